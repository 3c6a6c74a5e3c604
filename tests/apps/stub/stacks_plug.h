/* What stacks_plugins and its libraries know of each other. */
#ifndef STACKS_PLUG_H
#define STACKS_PLUG_H

typedef void plug_call(void *arg);
typedef void plug_enter(plug_call *call, void *arg, int depth);
plug_enter *plug_entry(void);

#endif
