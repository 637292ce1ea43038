// Waits and queries.
#include "probe.h"

namespace probe {

const std::vector<call> wait_calls = {
    {"cuStreamSynchronize(capturing)", [](bench& b) { return cuStreamSynchronize(b.capturing); }},
    {"cuStreamSynchronize(other)", [](bench& b) { return cuStreamSynchronize(b.other); }},
    {"cuStreamSynchronize(legacy)", [](bench&) { return cuStreamSynchronize(CU_STREAM_LEGACY); }},
    {"cuStreamSynchronize(nonblocking)", [](bench& b) { return cuStreamSynchronize(b.nonblocking); }},
    {"cuStreamQuery(capturing)", [](bench& b) { return cuStreamQuery(b.capturing); }},
    {"cuStreamQuery(other)", [](bench& b) { return cuStreamQuery(b.other); }},
    {"cuStreamQuery(legacy)", [](bench&) { return cuStreamQuery(CU_STREAM_LEGACY); }},
    {"cuCtxSynchronize", [](bench&) { return cuCtxSynchronize(); }},
    {"cuEventSynchronize(eager event)", [](bench& b) { return cuEventSynchronize(b.eager); }},
    {"cuEventQuery(eager event)", [](bench& b) { return cuEventQuery(b.eager); }},
    {"cuEventRecord(captured)+cuEventQuery",
     [](bench& b) { return in_turn([&] { return b.mark(); }, [&] { return cuEventQuery(b.captured); }); }},
    {"cuEventRecord(captured)+cuEventSynchronize",
     [](bench& b) { return in_turn([&] { return b.mark(); }, [&] { return cuEventSynchronize(b.captured); }); }},
    {"cuEventRecordWithFlags(EXTERNAL)+cuEventQuery",
     [](bench& b) {
       return in_turn([&] { return cuEventRecordWithFlags(b.second, b.capturing, CU_EVENT_RECORD_EXTERNAL); },
                      [&] { return cuEventQuery(b.second); });
     }},
    {"cuEventElapsedTime(eager,eager)",
     [](bench& b) {
       float milliseconds = 0;
       return cuEventElapsedTime(&milliseconds, b.eager, b.eager);
     }},
    {"cuEventElapsedTime(captured,captured)",
     [](bench& b) {
       float milliseconds = 0;
       return in_turn([&] { return b.mark(); },
                      [&] { return cuEventElapsedTime(&milliseconds, b.captured, b.captured); });
     }},
    {"exchange RELAXED; cuEventQuery(eager); restore",
     [](bench& b) { return with_mode(CU_STREAM_CAPTURE_MODE_RELAXED, [&] { return cuEventQuery(b.eager); }); }},
    {"exchange RELAXED; cuStreamSynchronize(other); restore",
     [](bench& b) { return with_mode(CU_STREAM_CAPTURE_MODE_RELAXED, [&] { return cuStreamSynchronize(b.other); }); }},
    {"exchange RELAXED; cuCtxSynchronize; restore",
     [](bench&) { return with_mode(CU_STREAM_CAPTURE_MODE_RELAXED, [] { return cuCtxSynchronize(); }); }},
    {"cuStreamWaitEvent(capturing,eager ev)", [](bench& b) { return cuStreamWaitEvent(b.capturing, b.eager, 0); }},
    {"cuStreamWaitEvent(capturing,eager ev,EXTERNAL)",
     [](bench& b) { return cuStreamWaitEvent(b.capturing, b.eager, CU_EVENT_WAIT_EXTERNAL); }},
    {"cuStreamWaitEvent(capturing, never-recorded event)",
     [](bench& b) { return cuStreamWaitEvent(b.capturing, b.never, 0); }},
    {"cuStreamWaitEvent(legacy, captured event)",
     [](bench& b) {
       return in_turn([&] { return b.mark(); }, [&] { return cuStreamWaitEvent(CU_STREAM_LEGACY, b.captured, 0); });
     }},
    {"cuCtxRecordEvent", [](bench& b) { return cuCtxRecordEvent(b.home.context, b.second); }},
};

} // namespace probe
