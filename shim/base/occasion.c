/* SPDX-License-Identifier: Apache-2.0 */

/* Occasion -- has somebody asked for a report? */

#include "base/occasion.h"

atomic_uint sp_occasion_asked;
