/* rendezvous.c -- messages between rank 0 and each other rank: hello when they meet, then exchanges, a failure, or bye.
 *
 * In an exchange each rank sends rank 0 its part and gets all parts back, or the reason why there is none. Whoever learns of a failure
 * keeps its sentence; rank 0 passes it on. A connection that ends without bye is a rank that died. */
#include "config.h"
#include "rendezvous.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HELLO = 1, PART, ALL, FAILED, BYE };
typedef struct message {
  char     magic[4];
  uint32_t kind, rank, size, bytes, reserved;
  uint64_t seq, token;
  char     what[408];
} message;

int64_t qn__now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- bytes -------------------------------------------------------------------------------- */

/* 1: the socket has something; 0: not until then. */
static int ready(int fd, short events, int64_t until)
{
  for (;;) {
    const int64_t left = until - qn__now();
    struct pollfd p = { fd, events, 0 };
    const int n = poll(&p, 1, left < 0 ? 0 : left > 60000 ? 60000 : (int)left);
    if (n > 0) return 1;
    if (n < 0 && errno != EINTR) return 0;
    if (left <= 0) return 0;
  }
}

/* 1: done; 0: too late; -1: the other side has ended. */
static int receive(int fd, void *to, size_t bytes, int64_t until)
{
  for (char *p = to; bytes;) {
    if (!ready(fd, POLLIN, until)) return 0;
    const ssize_t n = recv(fd, p, bytes, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return -1;
    p += n;
    bytes -= (size_t)n;
  }
  return 1;
}

static int send_all(int fd, const void *from, size_t bytes, int64_t until)
{
  for (const char *p = from; bytes;) {
    if (!ready(fd, POLLOUT, until)) return 0;
    const ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return -1;
    p += n;
    bytes -= (size_t)n;
  }
  return 1;
}

static message head(const qn__meeting *m, uint32_t kind, const char *what, size_t bytes)
{
  message h = { .magic = "QNG1", .kind = kind, .rank = (uint32_t)m->rank, .size = (uint32_t)m->size, .bytes = (uint32_t)bytes,
                .seq = m->seq };
  snprintf(h.what, sizeof h.what, "%s", what);
  return h;
}

static int say(const qn__meeting *m, int fd, uint32_t kind, const char *what, const void *data, size_t bytes, int64_t until)
{
  const message h = head(m, kind, what, bytes);
  const int sent = send_all(fd, &h, sizeof h, until);
  return sent == 1 && bytes ? send_all(fd, data, bytes, until) : sent;
}

/* ---- failures ------------------------------------------------------------------------------ */

static qn_status sticky(const qn__meeting *m) { return qn__fail(QN_DEVICE, "%s", m->why); }

/* Keeps the first sentence, and passes it on: rank 0 to all but `except`, the others to rank 0. */
static qn_status keep(qn__meeting *m, const char *sentence, int except)
{
  if (m->failed) return sticky(m);
  m->failed = true;
  snprintf(m->why, sizeof m->why, "%s", sentence);
  for (int r = 0; m->peer && r < (m->rank ? 1 : m->size); r++)
    if (r != except && m->peer[r] >= 0) say(m, m->peer[r], FAILED, "", m->why, strlen(m->why), qn__now() + 1000);
  return sticky(m);
}

qn_status qn__meeting_fail(qn__meeting *m, const char *sentence)
{
  pthread_mutex_lock(&m->lock);
  const qn_status status = keep(m, sentence, -1);
  pthread_mutex_unlock(&m->lock);
  return status;
}

static qn_status died(qn__meeting *m, int rank)
{
  char why[128];
  snprintf(why, sizeof why, "the group has failed: rank %d ended without leaving it (rank %d found its connection closed)", rank, m->rank);
  close(m->peer[rank]);
  m->peer[rank] = -1;
  return keep(m, why, rank);
}

static qn_status told(qn__meeting *m, int rank, const message *h)
{
  char why[sizeof m->why] = "";
  const size_t bytes = h->bytes < sizeof why ? h->bytes : sizeof why - 1;
  if (receive(m->peer[rank], why, bytes, qn__now() + 2000) != 1) return died(m, rank);
  return keep(m, why, rank);
}

static void left(qn__meeting *m, int rank)
{
  close(m->peer[rank]);
  m->peer[rank] = -1;
}

static qn_status look_around(qn__meeting *m)
{
  if (m->failed) return sticky(m);
  for (int r = 0; m->peer && r < (m->rank ? 1 : m->size); r++) {
    message h;
    if (m->peer[r] < 0) continue;
    const ssize_t n = recv(m->peer[r], &h, sizeof h, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return died(m, r);
    if (n < (ssize_t)sizeof h || (h.kind != FAILED && h.kind != BYE)) continue;
    if (receive(m->peer[r], &h, sizeof h, qn__now()) != 1) return died(m, r);
    if (h.kind == FAILED) return told(m, r, &h);
    left(m, r);
  }
  return QN_OK;
}

qn_status qn__meeting_watch(qn__meeting *m)
{
  pthread_mutex_lock(&m->lock);
  const qn_status status = look_around(m);
  pthread_mutex_unlock(&m->lock);
  return status;
}

/* ---- exchanges ------------------------------------------------------------------------------ */

static qn_status late(qn__meeting *m, const char *what, const bool *here)
{
  char why[sizeof m->why], who[256] = "0";
  size_t n = 0;
  for (int r = 1; here && r < m->size; r++)
    if (!here[r] && n < sizeof who - 8) n += (size_t)snprintf(who + n, sizeof who - n, "%s%d", n ? ", " : "", r);
  snprintf(why, sizeof why, "the group has failed: rank %d waited %.3g s, its deadline, for rank %s at \"%s\"", m->rank,
           (double)m->deadline / 1000, who, what);
  return keep(m, why, -1);
}

/* Rank 0 takes a message of rank r. *here: it was its part. */
static qn_status take_part(qn__meeting *m, int r, const char *what, size_t bytes, char *all, bool *here, int64_t until)
{
  message h;
  int got = receive(m->peer[r], &h, sizeof h, until);
  char why[sizeof m->why];
  if (got == 1 && h.kind == FAILED) return told(m, r, &h);
  if (got == 1 && h.kind == BYE) {
    left(m, r);
    snprintf(why, sizeof why, "the group has failed: rank %d has left it, and rank 0 is at \"%s\"", r, what);
    return keep(m, why, r);
  }
  if (got == 1 && (h.kind != PART || h.seq != m->seq || strcmp(h.what, what) || h.bytes != bytes)) {
    h.what[sizeof h.what - 1] = 0;
    snprintf(why, sizeof why, "the ranks do different things: rank 0 is at \"%s\", and rank %d is at \"%s\"%s", what, r, h.what,
             strcmp(h.what, what) ? "" : ", with other sizes or after other exchanges");
    return keep(m, why, -1);
  }
  if (got == 1 && bytes) got = receive(m->peer[r], all + (size_t)r * bytes, bytes, until);
  if (got != 1) return got ? died(m, r) : QN_OK;
  *here = true;
  return QN_OK;
}

static qn_status gather(qn__meeting *m, const char *what, size_t bytes, char *all, int64_t until)
{
  bool here[m->size];
  struct pollfd p[m->size];
  int missing = m->size - 1;
  memset(here, 0, sizeof here);
  for (int r = 1; r < m->size; r++)
    if (m->peer[r] < 0) {
      char why[sizeof m->why];
      snprintf(why, sizeof why, "the group has failed: rank %d has left it, and rank 0 is at \"%s\"", r, what);
      return keep(m, why, r);
    }
  while (missing) {
    const int64_t ms = until - qn__now();
    for (int r = 1; r < m->size; r++) p[r - 1] = (struct pollfd){ here[r] ? -1 : m->peer[r], POLLIN, 0 };
    if (ms <= 0) return late(m, what, here);
    if (poll(p, (nfds_t)m->size - 1, ms > 60000 ? 60000 : (int)ms) <= 0) continue;
    for (int r = 1; r < m->size; r++) {
      if (here[r] || !p[r - 1].revents) continue;
      const qn_status status = take_part(m, r, what, bytes, all, &here[r], until);
      if (status) return status;
      missing -= here[r];
    }
  }
  for (int r = 1; r < m->size; r++)
    if (say(m, m->peer[r], ALL, what, all, bytes * (size_t)m->size, until) != 1) return died(m, r);
  return QN_OK;
}

/* Rank 0 finds out first who is late: its sentence is waited for a little longer. */
static qn_status ask(qn__meeting *m, const char *what, const void *mine, size_t bytes, char *all, int64_t until)
{
  message h;
  if (m->peer[0] < 0) {
    char why[sizeof m->why];
    snprintf(why, sizeof why, "the group has failed: rank 0 has left it, and rank %d is at \"%s\"", m->rank, what);
    return keep(m, why, -1);
  }
  say(m, m->peer[0], PART, what, mine, bytes, until);           /* if rank 0 has ended, the answer tells */
  int got = receive(m->peer[0], &h, sizeof h, until + m->deadline / 8 + 500);
  if (got == 1 && h.kind == FAILED) return told(m, 0, &h);
  if (got == 1 && h.kind == BYE) {
    left(m, 0);
    return ask(m, what, mine, bytes, all, until);
  }
  if (got == 1 && bytes) got = receive(m->peer[0], all, bytes * (size_t)m->size, until + m->deadline / 8 + 500);
  return got == 1 ? QN_OK : got ? died(m, 0) : late(m, what, NULL);
}

static qn_status exchange(qn__meeting *m, const char *what, const void *mine, size_t bytes, void *all)
{
  char text[sizeof ((message *)0)->what];
  const int64_t until = qn__now() + m->deadline;
  if (m->failed) return sticky(m);
  if (bytes) memcpy((char *)all + (size_t)m->rank * bytes, mine, bytes);
  if (m->size == 1) return QN_OK;
  snprintf(text, sizeof text, "%s", what);
  m->seq++;
  return m->rank ? ask(m, text, mine, bytes, all, until) : gather(m, text, bytes, all, until);
}

qn_status qn__meeting_exchange(qn__meeting *m, const char *what, const void *mine, size_t bytes, void *all)
{
  pthread_mutex_lock(&m->lock);
  const qn_status status = exchange(m, what, mine, bytes, all);
  pthread_mutex_unlock(&m->lock);
  return status;
}

/* ---- meeting --------------------------------------------------------------------------------- */

static void quick(int fd)
{
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static qn_status resolve(const qn__place_to_meet *at, struct addrinfo **list)
{
  const struct addrinfo want = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
  const int error = getaddrinfo(at->host, at->port, &want, list);
  return error ? qn__fail(QN_SYSTEM, "at: %s port %s: %s", at->host, at->port, gai_strerror(error)) : QN_OK;
}

static int listen_at(const struct sockaddr *address, socklen_t bytes)
{
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (!bind(fd, address, bytes) && !listen(fd, 128)) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static void port_of(int fd, qn__place_to_meet *at)
{
  struct sockaddr_storage s;
  socklen_t bytes = sizeof s;
  if (getsockname(fd, (struct sockaddr *)&s, &bytes)) return;
  getnameinfo((struct sockaddr *)&s, bytes, at->host, sizeof at->host, at->port, sizeof at->port, NI_NUMERICHOST | NI_NUMERICSERV);
}

/* Another user must not be able to say where ranks meet. */
static qn_status write_place(qn__place_to_meet *at)
{
  char text[320];
  const int n = snprintf(text, sizeof text, "%s %s %llx\n", at->host, at->port, (unsigned long long)at->token);
  const int fd = open(at->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return qn__fail(QN_SYSTEM, "at: file %s: %s", at->path, strerror(errno));
  const bool written = write(fd, text, (size_t)n) == n;
  close(fd);
  return written ? QN_OK : qn__fail(QN_SYSTEM, "at: file %s: cannot be written", at->path);
}

static bool read_place(qn__place_to_meet *at)
{
  char text[320] = "", host[256], port[16];
  unsigned long long token;
  struct stat s;
  const int fd = open(at->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ours = !fstat(fd, &s) && s.st_uid == geteuid() && read(fd, text, sizeof text - 1) > 0;
  close(fd);
  if (!ours || !strchr(text, '\n') || sscanf(text, "%255s %15s %llx", host, port, &token) != 3) return false;
  snprintf(at->host, sizeof at->host, "%s", host);
  snprintf(at->port, sizeof at->port, "%s", port);
  at->token = token;
  return true;
}

static qn_status open_door(qn__place_to_meet *at)
{
  struct addrinfo *list;
  qn_status status = QN_OK;
  if (at->listener >= 0) return QN_OK;
  if (*at->path) {
    const struct sockaddr_in loop = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if ((at->listener = listen_at((const struct sockaddr *)&loop, sizeof loop)) < 0) return qn__fail(QN_SYSTEM, "at: %s", strerror(errno));
    port_of(at->listener, at);
    if (getrandom(&at->token, sizeof at->token, 0) < 0) at->token = (uint64_t)qn__now();
    return write_place(at);
  }
  if ((status = resolve(at, &list))) return status;
  for (const struct addrinfo *a = list; a && at->listener < 0; a = a->ai_next) at->listener = listen_at(a->ai_addr, a->ai_addrlen);
  if (at->listener < 0) status = qn__fail(QN_SYSTEM, "at: rank 0 cannot listen on %s port %s: %s", at->host, at->port, strerror(errno));
  freeaddrinfo(list);
  return status;
}

/* Takes one caller's hello; a stranger is sent away. */
static qn_status admit(qn__meeting *m, const qn__place_to_meet *at, int *n)
{
  char why[160];
  message h;
  const int fd = accept4(at->listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return QN_OK;
  const bool ours = receive(fd, &h, sizeof h, qn__now() + 2000) == 1 && !memcmp(h.magic, "QNG1", 4) && h.kind == HELLO &&
                    h.token == at->token;
  const bool fits = ours && h.size == (uint32_t)m->size && h.rank > 0 && h.rank < h.size && m->peer[h.rank] < 0;
  if (fits) {
    quick(fd);
    m->peer[h.rank] = fd;
    ++*n;
    return QN_OK;
  }
  if (ours) {
    snprintf(why, sizeof why, "the group has failed: a rank came as %u of %u where rank 0 waits for %d%s", h.rank, h.size, m->size,
             h.size == (uint32_t)m->size && h.rank < h.size ? ", and that one is there" : "");
    say(m, fd, FAILED, "", why, strlen(why), qn__now() + 1000);
    close(fd);
    return keep(m, why, -1);
  }
  close(fd);
  return QN_OK;
}

static qn_status receive_all(qn__meeting *m, qn__place_to_meet *at, int64_t until)
{
  int n = 1;
  qn_status status = open_door(at);
  while (!status && n < m->size) {
    bool here[m->size];
    for (int r = 0; r < m->size; r++) here[r] = m->peer[r] >= 0;
    status = ready(at->listener, POLLIN, until) ? admit(m, at, &n) : late(m, "the meeting", here);
  }
  if (*at->path && at->listener >= 0 && status != QN_SYSTEM) unlink(at->path);
  if (at->listener >= 0) close(at->listener);
  at->listener = -1;
  for (int r = 1; r < m->size && !status; r++)
    if (say(m, m->peer[r], HELLO, "", NULL, 0, until) != 1) status = died(m, r);
  return status;
}

static int call(const qn__place_to_meet *at)
{
  struct addrinfo *list;
  int fd = -1;
  if (resolve(at, &list)) return -1;
  for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(list);
  return fd;
}

/* Calls until rank 0 answers: it may come later, and a file may be one that an earlier group left. */
static qn_status call_first(qn__meeting *m, qn__place_to_meet *at, int64_t until)
{
  message h;
  if (at->listener >= 0) close(at->listener);
  at->listener = -1;
  while (qn__now() < until) {
    const struct timespec pause = { 0, 10000000 };
    if (!*at->path || read_place(at)) m->peer[0] = call(at);
    if (m->peer[0] >= 0) {
      quick(m->peer[0]);
      h = head(m, HELLO, "", 0);
      h.token = at->token;
      if (send_all(m->peer[0], &h, sizeof h, until) == 1) {
        const int got = receive(m->peer[0], &h, sizeof h, until + m->deadline / 8 + 500);
        if (got == 1) return h.kind == FAILED ? told(m, 0, &h) : QN_OK;
        if (!got) break;
      }
      left(m, 0);
    }
    nanosleep(&pause, NULL);
  }
  return late(m, "the meeting", NULL);
}

qn_status qn__meet(qn__meeting *m, qn__place_to_meet *at)
{
  const int64_t until = qn__now() + m->deadline;
  if (m->size == 1) return QN_OK;
  m->peer = qn__alloc((size_t)m->size * sizeof *m->peer);
  if (!m->peer) return qn__fail(QN_NO_MEMORY, "no memory for a group");
  for (int r = 0; r < m->size; r++) m->peer[r] = -1;
  return m->rank ? call_first(m, at, until) : receive_all(m, at, until);
}

void qn__meeting_end(qn__meeting *m)
{
  for (int r = 0; m->peer && r < (m->rank ? 1 : m->size); r++) {
    if (m->peer[r] < 0) continue;
    say(m, m->peer[r], BYE, "", NULL, 0, qn__now() + 1000);
    close(m->peer[r]);
  }
  qn__free(m->peer);
  m->peer = NULL;
}

/* At the address that its connection to the others has. */
qn_status qn__listener(const qn__meeting *m, qn__place_to_meet *at)
{
  struct sockaddr_storage s;
  socklen_t bytes = sizeof s;
  const int fd = m->peer[m->rank ? 0 : 1];
  if (fd < 0 || getsockname(fd, (struct sockaddr *)&s, &bytes)) return qn__fail(QN_DEVICE, "the group's ranks have left it");
  if (s.ss_family == AF_INET) ((struct sockaddr_in *)&s)->sin_port = 0;
  else ((struct sockaddr_in6 *)&s)->sin6_port = 0;
  if ((at->listener = listen_at((const struct sockaddr *)&s, bytes)) < 0) return qn__fail(QN_SYSTEM, "split: %s", strerror(errno));
  port_of(at->listener, at);
  if (getrandom(&at->token, sizeof at->token, 0) < 0) at->token = (uint64_t)qn__now();
  return QN_OK;
}
