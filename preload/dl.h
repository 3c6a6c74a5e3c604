/* Where this library lies, and the wrappers of getenv, secure_getenv, dlsym, dlopen and dlclose
 * (dl.c). */
#ifndef GT_DL_H
#define GT_DL_H

/* Finds the real functions behind the wrappers and our own path. First thing in the constructor:
 * later the working directory may have changed and LD_PRELOAD may have named us by a relative path.
 * Calls no malloc on success; errno is preserved. Calling it again does nothing. */
void gt_dl_init(void);

/* Absolute path of the library; NULL if it can't be found (longer than PATH_MAX, no working
 * directory). Lives as long as the process. Any thread, also before gt_dl_init. */
const char *gt_dl_self(void);

/* What getenv says without our answers. */
const char *gt_dl_environment(const char *name);

/* The function that `name` of ours stands in front of: the next one in the global scope, else that
 * of the first of these libraries (NULL ends the list) that is loaded, for one that came in by a
 * plugin is not in the global scope. It stays loaded from then on. NULL if there is none. */
void *gt_dl_behind(const char *name, const char *const *libraries);
/* The same without keeping it: for one that is asked again after every dlopen. errno is preserved.
 */
void *gt_dl_find(const char *name, const char *const *libraries);
/* 1 if the address lies in this library. */
int gt_dl_ours(const void *address);
/* What the global scope has by that name, or NULL. Waits while another thread is loading or closing
 * a library; for where dlsym may be called. */
void *gt_dl_global(const char *name);

/* dlopen, dlsym and the handle of the library that an address lies in, past our own wrappers; NULL
 * as dlopen and dlsym have it. May load, so not from inside a hook that a lock is held around. */
void *gt_dl_open(const char *name, int mode);
void *gt_dl_in(void *handle, const char *name);
void *gt_dl_handle_of(const void *address);

#endif
