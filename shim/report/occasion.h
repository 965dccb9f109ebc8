/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_REPORT_OCCASION_H
#define SP_REPORT_OCCASION_H

/*
 * Occasion -- when is a report written, besides at the end?
 *
 * As STREAMPOOL_REPORT_ON says. A signal that the program handles or ignores stays the program's,
 * and one that it takes later does, too.
 */

#include "base/occasion.h"

/** sp_report_occasions_start() - takes the signals that are asked for. */
void sp_report_occasions_start(void);

void sp_report_asked(void);

/** sp_report_if_asked() - writes the report that was asked for, if one was. No lock may be held. */
static inline void sp_report_if_asked(void)
{
        if (sp_occasion_is_there())
                sp_report_asked();
}

#endif
