/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Headers -- do the offsets in python_layout.c agree with the headers of this CPython?
 *
 * Compiled by frames.py against one version after the other. Says what differs.
 */

#define Py_BUILD_CORE 1

#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#endif

#include "track/python_layout.h"

static int differences;

static void compare(const char *what, size_t ours, size_t theirs)
{
        if (ours == theirs)
                return;
        printf("%s: %zu, but in Python %s %zu\n", what, ours, PY_VERSION, theirs);
        differences++;
}

#define COMPARE(ours, type, member)                                                                \
        compare(#type "." #member, (size_t)(ours), offsetof(type, member))

static void compare_frames(const struct sp_python_layout *layout)
{
#if PY_VERSION_HEX < 0x030b0000
        COMPARE(layout->thread_root, PyThreadState, frame);
        COMPARE(layout->frame_previous, PyFrameObject, f_back);
        COMPARE(layout->frame_code, PyFrameObject, f_code);
        COMPARE(layout->frame_at, PyFrameObject, f_lasti);
#else
#if PY_VERSION_HEX < 0x030d0000
        COMPARE(layout->thread_root, PyThreadState, cframe);
        COMPARE(layout->root_frame, _PyCFrame, current_frame);
        COMPARE(layout->frame_code, _PyInterpreterFrame, f_code);
        COMPARE(layout->frame_at, _PyInterpreterFrame, prev_instr);
#else
        COMPARE(layout->thread_root, PyThreadState, current_frame);
        COMPARE(layout->frame_code, _PyInterpreterFrame, f_executable);
        COMPARE(layout->frame_at, _PyInterpreterFrame, instr_ptr);
#endif
#if PY_VERSION_HEX >= 0x030e0000
        compare("tag of a code object", layout->frame_code_tag, Py_TAG_REFCNT);
#endif
        COMPARE(layout->frame_previous, _PyInterpreterFrame, previous);
        COMPARE(layout->frame_owner, _PyInterpreterFrame, owner);
#endif
}

static void compare_codes(const struct sp_python_layout *layout)
{
        COMPARE(layout->code_first_line, PyCodeObject, co_firstlineno);
        COMPARE(layout->code_file, PyCodeObject, co_filename);
#if PY_VERSION_HEX < 0x030b0000
        COMPARE(layout->code_function, PyCodeObject, co_name);
#else
        COMPARE(layout->code_function, PyCodeObject, co_qualname);
        COMPARE(layout->code_first_traceable, PyCodeObject, _co_firsttraceable);
        COMPARE(layout->code_start, PyCodeObject, co_code_adaptive);
#endif
#if PY_VERSION_HEX < 0x030a0000
        COMPARE(layout->code_lines, PyCodeObject, co_lnotab);
#else
        COMPARE(layout->code_lines, PyCodeObject, co_linetable);
#endif
}

static void compare_objects(const struct sp_python_layout *layout)
{
        PyASCIIObject text = {0};
        unsigned int state;

        COMPARE(SP_PYTHON_TYPE, PyObject, ob_type);
        COMPARE(SP_PYTHON_SIZE, PyVarObject, ob_size);
        COMPARE(SP_PYTHON_BYTES, PyBytesObject, ob_sval);
        COMPARE(SP_PYTHON_SIZE, PyASCIIObject, length);
        COMPARE(SP_PYTHON_TEXT_STATE, PyASCIIObject, state);
        compare("characters of ASCII", layout->text_ascii, sizeof(PyASCIIObject));
        compare("characters of others", layout->text_compact, sizeof(PyCompactUnicodeObject));
        text.state.kind = 7;
        memcpy(&state, &text.state, sizeof(state));
        compare("kind", state, 7 << 2);
        text = (PyASCIIObject){0};
        text.state.compact = 1;
        memcpy(&state, &text.state, sizeof(state));
        compare("compact", state, 32);
        text = (PyASCIIObject){0};
        text.state.ascii = 1;
        memcpy(&state, &text.state, sizeof(state));
        compare("ascii", state, 64);
}

int main(void)
{
        const struct sp_python_layout *layout = NULL;

#if PY_VERSION_HEX >= 0x030d0000
        static const _Py_DebugOffsets runtime = {
                .cookie = _Py_Debug_Cookie,
                .thread_state.current_frame = offsetof(PyThreadState, current_frame),
                .interpreter_frame.previous = offsetof(_PyInterpreterFrame, previous),
                .interpreter_frame.executable = offsetof(_PyInterpreterFrame, f_executable),
                .interpreter_frame.instr_ptr = offsetof(_PyInterpreterFrame, instr_ptr),
                .interpreter_frame.owner = offsetof(_PyInterpreterFrame, owner),
                .code_object.filename = offsetof(PyCodeObject, co_filename),
                .code_object.qualname = offsetof(PyCodeObject, co_qualname),
                .code_object.linetable = offsetof(PyCodeObject, co_linetable),
                .code_object.firstlineno = offsetof(PyCodeObject, co_firstlineno),
                .code_object.co_code_adaptive = offsetof(PyCodeObject, co_code_adaptive),
                .pyobject.ob_type = offsetof(PyObject, ob_type),
                .bytes_object.ob_size = offsetof(PyVarObject, ob_size),
                .bytes_object.ob_sval = offsetof(PyBytesObject, ob_sval),
                .unicode_object.state = offsetof(PyASCIIObject, state),
                .unicode_object.length = offsetof(PyASCIIObject, length),
                .unicode_object.asciiobject_size = sizeof(PyASCIIObject),
        };
#else
        static const char runtime[8];
#endif
        layout = sp_python_layout_find(PY_VERSION " (headers) [GCC ]", &runtime);
        if (!layout) {
                printf("Python %s is not known\n", PY_VERSION);
                return 1;
        }
        compare_frames(layout);
        compare_codes(layout);
        compare_objects(layout);
        return differences != 0;
}
