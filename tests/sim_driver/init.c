/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Init -- may this call be answered at all?
 *
 * The driver's life in a process: nothing works before cuInit(), which
 * registers the atexit handler that ends it; from then on every call answers
 * DEINITIALIZED. In a fork child it never lived: NOT_INITIALIZED, even from
 * cuInit(). The look-ups and the version are the exceptions that need no life,
 * and a few calls on a parent's stream, which find it in their copy of its memory.
 *
 *   SIM_INIT_FORKS=1  cuInit() starts a process, as the real one runs nvidia-modprobe
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "exports.h"
#include "fault.h"
#include "memory.h"
#include "sim.h"

enum life {
        NEW,
        LIVE,
        ENDED,
        CHILD,
};

static atomic_int life = NEW;

static int life_refusal(bool needs_init)
{
        switch ((enum life)atomic_load(&life)) {
        case LIVE:
                return needs_init && sim_in_host_function() ? CUDA_ERROR_NOT_PERMITTED : 0;
        case ENDED:
                return CUDA_ERROR_DEINITIALIZED;
        case NEW:
        case CHILD:
                break;
        }
        return needs_init ? CUDA_ERROR_NOT_INITIALIZED : 0;
}

bool sim_in_child(void)
{
        return atomic_load(&life) == CHILD;
}

/*
 * Calls that look at their stream before they ask whether there is a driver: a fork
 * child finds it in its copy of the parent's memory. The real driver goes on from there
 * and fails, says that it succeeded, or crashes, as the parent's last calls have it;
 * here the calls fail in the way that was seen most often.
 */
static bool answers_children(const char *symbol)
{
        return !strncmp(symbol, "cuMemAllocAsync", 15) || !strncmp(symbol, "cuMemFreeAsync", 14) ||
               !strncmp(symbol, "cuStreamSynchronize", 19);
}

static int admit(int row, bool needs_init)
{
        int refusal = life_refusal(needs_init);

        return refusal ? refusal : sim_fault_due(row);
}

int sim_admit(const char *symbol, bool needs_init)
{
        return admit(sim_fault_count(symbol), needs_init);
}

int sim_stub(int index)
{
        int refusal = admit(sim_fault_count(sim_exports[index].symbol), true);

        return refusal ? refusal : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sim_enter(struct sim_call *call, const char *symbol, enum sim_need need)
{
        int row = sim_fault_count(symbol);
        int refusal = life_refusal(need == SIM_NEED_INIT);

        if (refusal && !(sim_in_child() && answers_children(symbol)))
                return (CUresult)refusal;
        call->symbol = symbol;
        pthread_mutex_lock(&sim_mutex);
        refusal = sim_fault_due(row);
        if (refusal) {
                if (sim_is_sticky(refusal))
                        sim_context_poison((CUresult)refusal);
                pthread_mutex_unlock(&sim_mutex);
                return (CUresult)refusal;
        }
        call->locked = true;
        return CUDA_SUCCESS;
}

void sim_leave(struct sim_call *call)
{
        if (call->locked)
                pthread_mutex_unlock(&sim_mutex);
        call->locked = false;
}

bool sim_is_sticky(int code)
{
        switch (code) {
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
                return true;
        default:
                return false;
        }
}

static void end(void)
{
        atomic_store(&life, ENDED);
}

/* No lock of the parent is worth keeping: every call of the child is refused before it takes one.
 */
static void become_child(void)
{
        if (atomic_load(&life) == NEW)
                return;
        atomic_store(&life, CHILD);
        sim_engine_child();
}

static __attribute__((constructor)) void watch_forks(void)
{
        pthread_atfork(NULL, NULL, become_child);
}

static void start_process(void)
{
        pid_t child = fork();
        int status;

        if (!child) {
                execl("/bin/true", "true", (char *)NULL);
                _exit(127);
        }
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
                ;
}

CUresult CUDAAPI cuInit(unsigned int flags)
{
        const char *forks = getenv("SIM_INIT_FORKS");

        SIM_ENTER_AS("cuInit", SIM_NEED_NOTHING);
        if (atomic_load(&life) == CHILD)
                return CUDA_ERROR_NOT_INITIALIZED;
        if (flags)
                return CUDA_ERROR_INVALID_VALUE;
        if (atomic_load(&life) == LIVE)
                return CUDA_SUCCESS;
        if (forks && *forks == '1')
                start_process();
        if (!sim_devices_start())
                return CUDA_ERROR_NO_DEVICE;
        sim_engine_start();
        atexit(end);
        atomic_store(&life, LIVE);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
        SIM_ENTER_AS("cuDriverGetVersion", SIM_NEED_NOTHING);
        if (!version)
                return CUDA_ERROR_INVALID_VALUE;
        *version = sim_age();
        return CUDA_SUCCESS;
}
