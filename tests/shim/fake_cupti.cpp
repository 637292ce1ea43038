// Stands in for libcupti.so.13 where there is no GPU: one subscriber, as documented, and calls to play what CUPTI would
// report.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using callback = void (*)(void*, int, std::uint32_t, const void*);
constexpr int held_by_another = 39; // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
constexpr int runtime_domain = 2, resource_domain = 3;
constexpr std::uint32_t module_loaded = 6;

callback current;
void* user_data;
char holder[64];
int marker; // its address is the handle
bool runtime_on, module_on;
unsigned subscriptions;

struct params { // CUpti_SubscriberParams
  std::size_t bytes;
  const char* name;
  char* old_name;
  std::size_t old_name_bytes;
};

int take(void** subscriber, callback function, void* user, const char* name) {
  if (current) return held_by_another;
  current = function, user_data = user, *subscriber = &marker;
  std::snprintf(holder, sizeof holder, "CUPTI for %s", name);
  ++subscriptions;
  return 0;
}

} // namespace

EXPORT int cuptiSubscribe(void** subscriber, callback function, void* user) {
  return take(subscriber, function, user, "a V1 client");
}

EXPORT int cuptiSubscribe_v2(void** subscriber, callback function, void* user, params* p) {
  const int r = take(subscriber, function, user, p->name);
  if (r == held_by_another && p->old_name) std::snprintf(p->old_name, p->old_name_bytes, "%s", holder);
  return r;
}

EXPORT int cuptiUnsubscribe(void*) {
  current = nullptr, runtime_on = module_on = false;
  return 0;
}

EXPORT int cuptiEnableDomain(std::uint32_t enable, void*, int domain) {
  if (domain == runtime_domain) runtime_on = enable != 0;
  return 0;
}

EXPORT int cuptiEnableCallback(std::uint32_t enable, void*, int domain, std::uint32_t id) {
  if (domain == resource_domain && id == module_loaded) module_on = enable != 0;
  return 0;
}

EXPORT unsigned fake_cupti_subscriptions() { return subscriptions; }
EXPORT int fake_cupti_held() { return current != nullptr; }

// The thread enters (site 0) or leaves (1) a runtime call.
EXPORT void fake_cupti_runtime(int site, const char* name) {
  struct {
    int site;
    const char* name;
  } data{site, name};
  if (current && runtime_on) current(user_data, runtime_domain, 1, &data);
}

EXPORT void fake_cupti_module() {
  if (current && module_on) current(user_data, resource_domain, module_loaded, nullptr);
}
