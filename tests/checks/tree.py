"""The files of the repository, for the checks beside this module."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = ("build", ".git", ".cache", "out")


def files(root=ROOT):
    """Every file under version control or about to be; without git, every file outside build folders. Sorted."""
    try:
        done = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                              capture_output=True, check=True)
        paths = [root / name for name in done.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in root.rglob("*")
                 if not any(part.startswith(SKIPPED) for part in path.relative_to(root).parts)]
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def text_of(path):
    """The text of a file, or None if it is not text."""
    data = path.read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


SOURCES = (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".def", ".inc")
