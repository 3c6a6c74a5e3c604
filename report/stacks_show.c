/* What views show of stacks: the text of each frame, and which frames, in which order. Called once
 * all is loaded; single thread. docs/format.md tells the texts. */
#include "report/model.h"
#include "report/mem.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

const char *const gt_stack_forms[GT_STACK_FORMS] = {"auto", "python", "native", "both"};

static const char *string(const struct gt_model *m, gt_text t)
{
    return gt_model_string(m, t, NULL);
}

static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static char *format(const struct gt_model *m, const struct gt_stack_frame *f)
{
    const char *name = string(m, f->function), *file = string(m, f->file), *end = "";
    const char *module = f->module ? base(string(m, m->modules[f->module - 1].path)) : "";
    if (f->kind == GT_STACK_IS_PYTHON && !*name)
        name = "?"; /* code.replace can take it away */
    if (f->inlined)
        end = " (inlined)";
    if (*file && *name && f->line)
        return gt_mem_format("%s(%u): %s%s", file, f->line, name, end);
    if (*file && *name)
        return gt_mem_format("%s: %s%s", file, name, end);
    if (*name && *module)
        return gt_mem_format("%s (%s)%s", name, module, end);
    if (*name)
        return gt_mem_format("%s%s", name, end);
    return gt_mem_format("%s%s0x%llx", module, *module ? "+" : "", (unsigned long long)f->offset);
}

static void set_texts(struct gt_model *m)
{
    for (size_t i = 0; i < m->frame_count; i++) {
        struct gt_stack_frame *f = &m->frames[i];
        if (f->kind == GT_STACK_IS_TEXT || f->kind == GT_STACK_IS_NOTE) {
            f->text = f->function;
            continue;
        }
        char *text = format(m, f);
        f->text = gt_model_textz(m, text);
        free(text);
    }
}

enum role {
    PLAIN,    /* code of the program, or of anything but the interpreter */
    LOOP,     /* one activation of the interpreter's loop */
    TAIL,     /* likewise, if the frame around it is none of the two: one instruction's function */
    INTERNAL, /* the interpreter's own, wherever it stands */
    BETWEEN   /* of the interpreter's file: its own if it lies between two activations */
};

/* From 3.14 on CPython may be built with a function for each of its instructions, which
 * _PyEval_EvalFrameDefault calls once and which then jump from one to the next. */
static enum role loop_role(const char *name)
{
    static const char loop[] = "_PyEval_EvalFrameDefault", tail[] = "_TAIL_CALL_";
    size_t n = sizeof loop - 1;
    if (!strncmp(name, tail, sizeof tail - 1))
        return TAIL;
    /* compilers make .cold and .lto_priv.0 of it */
    return !strncmp(name, loop, n) && (!name[n] || name[n] == '.') ? LOOP : PLAIN;
}

static int is_python(const struct gt_model *m, uint32_t module)
{
    const char *name = base(string(m, m->modules[module - 1].path));
    return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9);
}

/* What each frame is to the joined form. The caller frees. */
static uint8_t *roles(const struct gt_model *m)
{
    enum { PARTLY = 1, WHOLLY }; /* is the interpreter */
    uint8_t *role = gt_mem_new(m->frame_count, 1);
    uint8_t *interprets = gt_mem_new(m->module_count + 1, 1);
    for (size_t i = 0; i < m->frame_count; i++) {
        const struct gt_stack_frame *f = &m->frames[i];
        if (f->kind == GT_STACK_IS_NATIVE && !f->inlined &&
            (role[i] = (uint8_t)loop_role(string(m, f->function))) != PLAIN)
            interprets[f->module] = !f->module ? 0 : is_python(m, f->module) ? WHOLLY : PARTLY;
    }
    for (size_t i = 0; i < m->frame_count; i++) {
        const struct gt_stack_frame *f = &m->frames[i];
        const char *name = string(m, f->function);
        if (role[i] || f->kind != GT_STACK_IS_NATIVE || !interprets[f->module])
            continue;
        /* a program that has the interpreter linked into itself has functions of its own there */
        role[i] = interprets[f->module] == WHOLLY || !*name || !strncmp(name, "Py", 2) ||
                          !strncmp(name, "_Py", 3) || !strncmp(name, "pymain", 6)
                      ? INTERNAL
                      : BETWEEN;
    }
    free(interprets);
    return role;
}

struct join {
    struct gt_model *m;
    const uint8_t *role;
    struct gt_list python, native;
    uint32_t used; /* Python frames that have their place */
};

static uint32_t frame_at(const struct join *j, struct gt_list l, uint32_t i)
{
    return j->m->lists[l.first + i];
}

/* The Python frames of one activation, or all that are left. */
static void put_python(struct join *j, struct gt_list *out, int all)
{
    int more = 1;
    for (; more && j->used < j->python.count; j->used++) {
        uint32_t frame = frame_at(j, j->python, j->used);
        const struct gt_stack_frame *f = &j->m->frames[frame];
        if (!all && f->kind != GT_STACK_IS_PYTHON)
            return; /* "(truncated)": stands at the end */
        if (f->kind == GT_STACK_IS_NOTE && out->count && frame_at(j, *out, out->count - 1) == frame)
            continue; /* the native frames say so too */
        gt_model_list(j->m, out, frame);
        more = all || !f->entry;
    }
}

/* What the i-th native frame is in this stack. */
static enum role role_at(const struct join *j, uint32_t i)
{
    enum role role = j->role[frame_at(j, j->native, i)];
    if (role != TAIL)
        return role;
    enum role around = i + 1 < j->native.count ? j->role[frame_at(j, j->native, i + 1)] : PLAIN;
    return around == LOOP || around == TAIL ? INTERNAL : LOOP;
}

/* From the innermost frame outwards, so that a stack that was cut is right as far as it goes. */
static struct gt_list joined(struct join *j)
{
    struct gt_list out = {0};
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t i = 0; i < j->native.count; i++)
        if (role_at(j, i) == LOOP) {
            first = first == UINT32_MAX ? i : first;
            last = i;
        }
    if (!j->python.count || !j->native.count)
        return j->python.count ? j->python : j->native;
    for (uint32_t i = 0; i < j->native.count; i++) {
        uint32_t frame = frame_at(j, j->native, i);
        enum role role = role_at(j, i);
        if (role == LOOP)
            put_python(j, &out, 0);
        else if (role == PLAIN || (role == BETWEEN && (i < first || i > last)))
            gt_model_list(j->m, &out, frame);
    }
    /* the native frames end too early, or none of them is the interpreter's */
    put_python(j, &out, 1);
    return out;
}

static int is_text(const struct gt_model *m, struct gt_list l)
{
    return l.count && m->frames[m->lists[l.first]].kind == GT_STACK_IS_TEXT;
}

static struct gt_list choose(struct gt_model *m, const struct gt_stack *s, enum gt_stack_form form,
                             const uint8_t *role)
{
    struct join j = {m, role, s->python, s->native, 0};
    if (is_text(m, s->python))
        return s->python;
    if (form == GT_STACK_JOINED)
        return joined(&j);
    return form == GT_STACK_NATIVE || (form == GT_STACK_AUTO && !s->python.count) ? s->native
                                                                                  : s->python;
}

void gt_stacks_show(struct gt_model *m, enum gt_stack_form form)
{
    uint8_t *role = form == GT_STACK_JOINED ? roles(m) : NULL;
    set_texts(m);
    for (size_t i = 0; i < m->stack_count; i++)
        m->stacks[i].shown = choose(m, &m->stacks[i], form, role);
    free(role);
}

/* 1 if one of the globs, between commas, is `text`. */
static int matches(const char *globs, const char *text)
{
    while (*globs) {
        size_t n = strcspn(globs, ",");
        char *glob = gt_mem_copy(globs, n);
        int found = n && !fnmatch(glob, text, FNM_NOESCAPE);
        free(glob);
        if (found)
            return 1;
        globs += n + (globs[n] == ',');
    }
    return 0;
}

void gt_stacks_hide(struct gt_model *m, const char *globs)
{
    uint8_t *hidden = gt_mem_new(m->frame_count, 1);
    for (size_t i = 0; i < m->frame_count; i++)
        hidden[i] = (uint8_t)matches(globs, string(m, m->frames[i].text));
    for (size_t i = 0; i < m->stack_count; i++) {
        struct gt_list all = m->stacks[i].shown, left = {0};
        for (uint32_t k = 0; k < all.count; k++) {
            uint32_t frame = m->lists[all.first + k];
            if (!hidden[frame])
                gt_model_list(m, &left, frame);
        }
        m->stacks[i].shown = left;
    }
    free(hidden);
}
