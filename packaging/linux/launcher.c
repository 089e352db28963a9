/* Starts Cutaway on the Python that lies beside it.
 *
 * Nothing of the person's own Python or Qt may reach the program: a stray PYTHONHOME, a QT_PLUGIN_PATH of another Qt or a
 * library path of another program ends it before its first line. They are taken out of the environment here, so that the
 * program's children do not see them either. Its own place is asked of the kernel: links and moved folders are no matter.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static const char *const removed[] = {
    "LD_LIBRARY_PATH", "QT_PLUGIN_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH", "QML_IMPORT_PATH", "QML2_IMPORT_PATH",
    "QT_API", "PYQTGRAPH_QT_LIB", "LLAMA_CPP_LIB_PATH", "GGML_BACKEND_PATH", "OPENSSL_CONF", "OPENSSL_MODULES",
};

static void clean_environment(void) {
    char name[256];
    char **entry = environ;
    while (*entry != NULL) {
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "PYTHON", 6) == 0 && length < sizeof name) {
            memcpy(name, *entry, length);
            name[length] = '\0';
            unsetenv(name);
            entry = environ; /* unsetenv moved what follows */
        } else {
            entry++;
        }
    }
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        unsetenv(removed[i]);
    /* For children that are not isolated: no packages of the person's, no modules of the working folder. */
    setenv("PYTHONNOUSERSITE", "1", 1);
    setenv("PYTHONSAFEPATH", "1", 1);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    setenv("RESOURCE_NAME", "cutaway", 0); /* the window's name, by which a desktop finds its menu entry */
}

int main(int argc, char **argv) {
    char root[PATH_MAX], python[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/exe", root, sizeof root - 1);
    if (length < 0 || (size_t)length >= sizeof root - 1) {
        fprintf(stderr, "cutaway: its own place cannot be found: %s\n", strerror(errno));
        return 1;
    }
    root[length] = '\0';
    for (int up = 0; up < 2; up++) { /* <root>/bin/cutaway */
        char *slash = strrchr(root, '/');
        if (slash == NULL)
            return 1;
        *slash = '\0';
    }
    snprintf(python, sizeof python, "%s/runtime/bin/python3", root);

    char **arguments = calloc((size_t)argc + 5, sizeof *arguments);
    if (arguments == NULL)
        return 1;
    int count = 0;
    arguments[count++] = python;
    arguments[count++] = "-I"; /* isolated: no environment, no person's packages, no working folder */
    arguments[count++] = "-B"; /* the program's folder is nobody's to write */
    arguments[count++] = "-m";
    arguments[count++] = "app";
    for (int i = 1; i < argc; i++)
        arguments[count++] = argv[i];
    clean_environment();
    execv(python, arguments);
    fprintf(stderr, "cutaway: %s cannot be started: %s. Install Cutaway again.\n", python, strerror(errno));
    return 1;
}
