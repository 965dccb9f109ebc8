/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Porter -- hands descriptors to other processes where they cannot be taken
 *
 * Containers may filter pidfd_getfd() out, and some kernels have none. What is
 * left is to send a descriptor through a socket, and that takes somebody who
 * answers at any time, while the program waits for the very process that asks. So
 * this is a thread: started by the first export, with every signal blocked, and
 * until the process ends. It calls no driver, and holds no lock while it waits. A
 * child of fork() has none, and exports nothing.
 *
 * The socket has an abstract name, so nothing is left in a file system, and both
 * sides are in one network namespace. Whoever asks has to run as the same user,
 * and to know the key of what it asks for, which is in the sealed handle only.
 * Neither side waits for the other for long.
 *
 * pthread_create() is looked up, because with an old C library its own library
 * would be loaded into every process that the shim is preloaded into; the driver
 * brings it along.
 */

#define _GNU_SOURCE /* RTLD_DEFAULT, struct ucred */

#include "track/porter.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "driver/lookup.h"
#include "track/export.h"

#define PATIENCE_S 5

struct question {
        uint64_t at;
        unsigned char key[16];
        uint32_t part;
        uint32_t unused;
};

/* Guarded by: porter_lock. */
static uint64_t number;
static struct sp_lock porter_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

/* Return: the length of the address. */
static socklen_t name_porter(struct sockaddr_un *address, uint64_t porter)
{
        int length;

        memset(address, 0, sizeof(*address));
        address->sun_family = AF_UNIX;
        /* The first byte stays 0: an abstract name. */
        length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                          "streampool-ipc-%016llx", (unsigned long long)porter);
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static void limit_patience(int connection)
{
        const struct timeval patience = {.tv_sec = PATIENCE_S};

        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* A message of one byte, and a descriptor with it. */
union ancillary {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
};

#define MESSAGE(iov, ancillary)                                                                    \
        {                                                                                          \
                .msg_iov = (iov), .msg_iovlen = 1, .msg_control = (ancillary)->bytes,              \
                .msg_controllen = sizeof((ancillary)->bytes)                                       \
        }

static bool send_descriptor(int connection, int descriptor)
{
        char byte = 0;
        struct iovec iov = {.iov_base = &byte, .iov_len = 1};
        union ancillary ancillary = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                                                .cmsg_level = SOL_SOCKET,
                                                .cmsg_type = SCM_RIGHTS}};
        struct msghdr message = MESSAGE(&iov, &ancillary);

        memcpy(CMSG_DATA(&ancillary.header), &descriptor, sizeof(descriptor));
        return sendmsg(connection, &message, MSG_NOSIGNAL) == 1;
}

/* the porter */

static bool is_same_user(int connection)
{
        struct ucred peer;
        socklen_t length = sizeof(peer);

        return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
               peer.uid == geteuid();
}

static void serve(int connection)
{
        struct question question;
        bool is_served = is_same_user(connection);

        limit_patience(connection);
        while (is_served && recv(connection, &question, sizeof(question), 0) == sizeof(question)) {
                struct sp_seal seal = {.at = question.at};
                int descriptor;

                memcpy(seal.key, question.key, sizeof(seal.key));
                descriptor = sp_export_descriptor(&seal, question.part);
                is_served = descriptor >= 0 && send_descriptor(connection, descriptor);
                if (descriptor >= 0)
                        close(descriptor);
        }
        close(connection);
}

static void *work(void *socket_number)
{
        int listening = (int)(intptr_t)socket_number;

        for (;;) {
                int connection = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

                if (connection >= 0)
                        serve(connection);
                else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK)
                        return NULL; /* the program closed what is not its own */
                else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
                        sleep(1);
        }
}

static bool start_thread(int listening)
{
        int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
        void *found = sp_dlsym(RTLD_DEFAULT, "pthread_create");
        sigset_t all, before;
        pthread_t thread;
        bool is_started;

        memcpy(&create, &found, sizeof(create));
        if (!create)
                return false;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        is_started = !create(&thread, NULL, work, (void *)(intptr_t)listening);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return is_started;
}

static uint64_t open_shop(void)
{
        int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct sockaddr_un address;
        uint64_t chosen = 0;

        if (listening < 0 || getrandom(&chosen, sizeof(chosen), 0) != sizeof(chosen) || !chosen ||
            bind(listening, (struct sockaddr *)&address, name_porter(&address, chosen)) ||
            listen(listening, 64) || !start_thread(listening)) {
                sp_log(SP_LOG_WARNING, "memory of the pool cannot be shared with other processes "
                                       "here; STREAMPOOL_BACKING=native needs less");
                if (listening >= 0)
                        close(listening);
                return 0;
        }
        sp_log(SP_LOG_INFO, "pidfd_getfd() is not allowed here: a thread hands out descriptors");
        return chosen;
}

uint64_t sp_porter_start(void)
{
        uint64_t started;

        sp_lock_take(&porter_lock);
        started = number;
        sp_lock_drop(&porter_lock);
        if (started)
                return started;
        /* No lock is held while a thread is made. Of two that were, both serve. */
        started = open_shop();
        sp_lock_take(&porter_lock);
        if (!number)
                number = started;
        started = number;
        sp_lock_drop(&porter_lock);
        return started;
}

/* in the process that opens */

int sp_porter_meet(const struct sp_seal *seal)
{
        int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct sockaddr_un address;
        int error;

        if (connection < 0)
                return -1;
        limit_patience(connection);
        if (!connect(connection, (struct sockaddr *)&address, name_porter(&address, seal->porter)))
                return connection;
        error = errno;
        close(connection);
        errno = error;
        return -1;
}

int sp_porter_ask(int connection, const struct sp_seal *seal, uint32_t part)
{
        struct question question = {.at = seal->at, .part = part};
        char byte;
        struct iovec iov = {.iov_base = &byte, .iov_len = 1};
        union ancillary ancillary;
        struct msghdr message = MESSAGE(&iov, &ancillary);
        int descriptor = -1;

        memset(&ancillary, 0, sizeof(ancillary));
        memcpy(question.key, seal->key, sizeof(question.key));
        if (send(connection, &question, sizeof(question), MSG_NOSIGNAL) != sizeof(question) ||
            recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != 1 ||
            ancillary.header.cmsg_type != SCM_RIGHTS ||
            ancillary.header.cmsg_len != CMSG_LEN(sizeof(int))) {
                errno = ESTALE;
                return -1;
        }
        memcpy(&descriptor, CMSG_DATA(&ancillary.header), sizeof(descriptor));
        return descriptor;
}
