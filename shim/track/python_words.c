/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Python words -- the names and the line of a place in a code object
 *
 * Code objects and their strings never change. What the interpreter keeps of a
 * string besides its characters, such as its UTF-8 form, can be made by another
 * thread at any moment, so it is not used.
 */

#include "track/python_words.h"

#define TEXT_MAX  (1 << 20) /* longer ones are not names */
#define TABLE_MAX (1 << 28)

struct text {
        const void *characters;
        size_t length;
        unsigned int width; /* bytes of a character */
        bool is_ascii;
};

struct table {
        const unsigned char *bytes;
        size_t size;
};

struct parts {
        struct text file, function;
        struct table lines;
};

/* objects */

/* The bits of PyASCIIObject.state: interned 0-1, kind 2-4, compact 5, ascii 6. */
static bool read_text(const struct sp_python_layout *layout, uintptr_t type, struct sp_sight *sight,
                      uintptr_t object, struct text *text)
{
        const unsigned char *seen = sp_sight_see(sight, object, SP_PYTHON_TEXT_HEAD);
        unsigned int state, width;
        size_t length;
        bool is_ascii;

        if (!seen || sp_sight_word(seen, SP_PYTHON_TYPE) != type)
                return false;
        length = sp_sight_word(seen, SP_PYTHON_SIZE);
        state = (unsigned int)sp_sight_number(seen, SP_PYTHON_TEXT_STATE);
        width = (state >> 2) & 7;
        is_ascii = state & 64;
        if (length > TEXT_MAX || !(state & 32) || (width != 1 && width != 2 && width != 4) ||
            (is_ascii && width != 1))
                return false;
        *text = (struct text){
                .characters = (const void *)(object + (is_ascii ? layout->text_ascii
                                                                : layout->text_compact)),
                .length = length,
                .width = width,
                .is_ascii = is_ascii,
        };
        return true;
}

static bool read_table(uintptr_t type, struct sp_sight *sight, uintptr_t object,
                       struct table *table)
{
        const unsigned char *seen = sp_sight_see(sight, object, SP_PYTHON_BYTES);

        if (!seen || sp_sight_word(seen, SP_PYTHON_TYPE) != type ||
            sp_sight_word(seen, SP_PYTHON_SIZE) > TABLE_MAX)
                return false;
        *table = (struct table){
                .bytes = (const unsigned char *)(object + SP_PYTHON_BYTES),
                .size = sp_sight_word(seen, SP_PYTHON_SIZE),
        };
        return true;
}

/* A frame that was kept for longer than its code object finds something else there. */
static bool read_parts(const struct sp_python_layout *layout, const struct sp_python_types *types,
                       struct sp_sight *sight, const struct sp_python_frame *frame,
                       struct parts *parts)
{
        const unsigned char *seen = sp_sight_see(sight, (uintptr_t)frame->code, layout->code_bytes);
        uintptr_t function, lines;

        if (!seen || sp_sight_word(seen, SP_PYTHON_TYPE) != types->code ||
            sp_sight_word(seen, layout->code_file) != (uintptr_t)frame->file ||
            sp_sight_number(seen, layout->code_first_line) != frame->first_line)
                return false;
        function = sp_sight_word(seen, layout->code_function);
        lines = sp_sight_word(seen, layout->code_lines);
        return read_text(layout, types->text, sight, (uintptr_t)frame->file, &parts->file) &&
               read_text(layout, types->text, sight, function, &parts->function) &&
               read_table(types->bytes, sight, lines, &parts->lines);
}

bool sp_python_is_sound(const struct sp_python_layout *layout, const struct sp_python_types *types,
                        struct sp_sight *sight, const struct sp_python_frame *frame)
{
        struct parts parts;

        return read_parts(layout, types, sight, frame, &parts);
}

/* spelling */

static uint32_t character_at(const struct text *text, size_t i)
{
        if (text->width == 1)
                return ((const uint8_t *)text->characters)[i];
        if (text->width == 2)
                return ((const uint16_t *)text->characters)[i];
        return ((const uint32_t *)text->characters)[i];
}

/* A byte of a file's name that is no UTF-8 is kept by Python as half a surrogate pair (PEP 383). */
static size_t encode(uint32_t character, char *bytes)
{
        if (character >= 0xdc80 && character <= 0xdcff) {
                bytes[0] = (char)(character - 0xdc00);
                return 1;
        }
        if ((character >= 0xd800 && character <= 0xdfff) || character > 0x10ffff)
                character = '?';
        if (character < 0x80) {
                bytes[0] = (char)character;
                return 1;
        }
        if (character < 0x800) {
                bytes[0] = (char)(0xc0 | character >> 6);
                bytes[1] = (char)(0x80 | (character & 63));
                return 2;
        }
        if (character < 0x10000) {
                bytes[0] = (char)(0xe0 | character >> 12);
                bytes[1] = (char)(0x80 | (character >> 6 & 63));
                bytes[2] = (char)(0x80 | (character & 63));
                return 3;
        }
        bytes[0] = (char)(0xf0 | character >> 18);
        bytes[1] = (char)(0x80 | (character >> 12 & 63));
        bytes[2] = (char)(0x80 | (character >> 6 & 63));
        bytes[3] = (char)(0x80 | (character & 63));
        return 4;
}

/* Return: where the words are, of @length bytes. */
static const char *spell(const struct text *text, char *room, size_t size, size_t *length)
{
        size_t used = 0;

        if (text->is_ascii) {
                *length = text->length;
                return text->characters;
        }
        for (size_t i = 0; i < text->length; i++) {
                char bytes[4];
                size_t more = encode(character_at(text, i), bytes);

                if (more > size - used)
                        break;
                memcpy(room + used, bytes, more);
                used += more;
        }
        *length = used;
        return room;
}

bool sp_python_spell(const struct sp_python_layout *layout, const struct sp_python_types *types,
                     const struct sp_python_frame *frame, struct sp_python_words *words)
{
        struct parts parts;

        if (!read_parts(layout, types, NULL, frame, &parts))
                return false;
        words->file = spell(&parts.file, words->file_spelled, sizeof(words->file_spelled),
                            &words->file_length);
        words->function = spell(&parts.function, words->function_spelled,
                                sizeof(words->function_spelled), &words->function_length);
        words->line = sp_python_line(layout->lines, parts.lines.bytes, parts.lines.size,
                                     frame->first_line, frame->at);
        return true;
}
