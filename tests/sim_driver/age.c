/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Age -- the version of the driver that was built
 *
 * The only source that is compiled once for each library: older ones lack the
 * symbols that are newer, also for dlsym().
 */

#include "exports.h"

const int sim_age_built = SIM_AGE_BUILT;
