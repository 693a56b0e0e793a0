/* SPDX-License-Identifier: MIT
 *
 * TLS 1.3 with an external PSK derived from the job's secret (RFC 8446, RFC 9257): one cipher
 * suite, psk_dhe_ke only (forward secrecy), no certificates, no tickets, no early data. A peer
 * that completes a handshake has the secret. Which peer it is follows from the hello inside, so a
 * connection that an attacker leads back to its sender is refused there.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "comm/comm_stream_private.h"

enum { RECORD = 16384, READ_AHEAD = 4 * RECORD, IDENTITY_TEXT = 32 };

struct comm_tls {
    SSL_CTX *context;
    uint8_t key[COMM_SECRET_BYTES];
    char identity[IDENTITY_TEXT];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *socket_method; /* OpenSSL's own would raise SIGPIPE */

static int socket_outcome(BIO *bio, ssize_t moved, int retry)
{
    BIO_clear_retry_flags(bio);
    if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    return (int)moved;
}

static int socket_read(BIO *bio, char *bytes, int count)
{
    const struct comm_stream *s = BIO_get_data(bio);

    return socket_outcome(bio, recv(s->fd, bytes, (size_t)count, 0), BIO_FLAGS_READ);
}

static int socket_write(BIO *bio, const char *bytes, int count)
{
    const struct comm_stream *s = BIO_get_data(bio);

    return socket_outcome(bio, send(s->fd, bytes, (size_t)count, MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static void make_method(void)
{
    socket_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "paceline socket");
    if (socket_method == NULL)
        return;
    BIO_meth_set_read(socket_method, socket_read);
    BIO_meth_set_write(socket_method, socket_write);
    BIO_meth_set_ctrl(socket_method, socket_control);
}

static SSL_SESSION *session_of(SSL *ssl, const struct comm_tls *tls)
{
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    SSL_SESSION *session = SSL_SESSION_new();

    if (session != NULL && cipher != NULL &&
        SSL_SESSION_set1_master_key(session, tls->key, sizeof tls->key) == 1 &&
        SSL_SESSION_set_cipher(session, cipher) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* Callback of the connecting side. `digest` is given in the second flight only. */
static int use_session(SSL *ssl, const EVP_MD *digest, const unsigned char **identity,
                       size_t *length, SSL_SESSION **session)
{
    const struct comm_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    *identity = NULL;
    *length = 0;
    *session = NULL;
    if (digest != NULL && !EVP_MD_is_a(digest, "SHA256"))
        return 1;
    if ((*session = session_of(ssl, tls)) == NULL)
        return 0;
    *identity = (const unsigned char *)tls->identity;
    *length = strlen(tls->identity);
    return 1;
}

/* Callback of the accepting side. An unknown identity ends the handshake, since there is no
 * certificate to fall back to. */
static int find_session(SSL *ssl, const unsigned char *identity, size_t length,
                        SSL_SESSION **session)
{
    const struct comm_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    *session = NULL;
    if (length != strlen(tls->identity) || CRYPTO_memcmp(identity, tls->identity, length) != 0)
        return 1;
    *session = session_of(ssl, tls);
    return *session != NULL;
}

/* TLS never sees the secret itself: the key and the identity are derived from it one way, each
 * separately. */
static bool derive(const struct comm_secret *secret, struct comm_tls *tls)
{
    static const char for_key[] = "paceline 1 tls psk", for_name[] = "paceline 1 psk identity";
    uint8_t name[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    char *at = tls->identity;

    if (HMAC(EVP_sha256(), secret->key, sizeof secret->key, (const uint8_t *)for_key,
             sizeof for_key - 1, tls->key, &count) == NULL ||
        HMAC(EVP_sha256(), secret->key, sizeof secret->key, (const uint8_t *)for_name,
             sizeof for_name - 1, name, &count) == NULL)
        return false;
    at += snprintf(at, sizeof tls->identity, "paceline-1-");
    for (int i = 0; i < 8; i++)
        at += snprintf(at, 3, "%02x", name[i]);
    return true;
}

static bool configure(SSL_CTX *context, bool accepts)
{
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, READ_AHEAD);
    if (accepts) {
        SSL_CTX_set_psk_find_session_callback(context, find_session);
    } else {
        SSL_CTX_set_psk_use_session_callback(context, use_session);
        /* A peer with a certificate instead of the PSK is refused: no authority is trusted. */
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    }
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
           SSL_CTX_set1_groups_list(context, "X25519") == 1 &&
           SSL_CTX_set_num_tickets(context, 0) == 1 && SSL_CTX_set_max_early_data(context, 0) == 1;
}

base_status comm_tls_new(const struct comm_secret *secret, bool accepts, struct comm_tls **tls_p)
{
    struct comm_tls *tls = base_calloc(1, sizeof *tls);

    *tls_p = NULL;
    pthread_once(&once, make_method);
    tls->context = SSL_CTX_new(accepts ? TLS_server_method() : TLS_client_method());
    if (socket_method == NULL || tls->context == NULL || !configure(tls->context, accepts) ||
        !derive(secret, tls)) {
        comm_tls_free(tls);
        return base_fail(BASE_ERR_INTERNAL, "cannot set up TLS: %s",
                         ERR_reason_error_string(ERR_peek_error()));
    }
    SSL_CTX_set_app_data(tls->context, tls);
    *tls_p = tls;
    return BASE_OK;
}

void comm_tls_free(struct comm_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context); /* streams hold references; callbacks are for handshakes only */
    explicit_bzero(tls, sizeof *tls);
    base_free(tls);
}

base_status comm_tls_begin(struct comm_tls *tls, struct comm_stream *stream)
{
    BIO *bio = BIO_new(socket_method);

    stream->tls = SSL_new(tls->context);
    if (stream->tls == NULL || bio == NULL) {
        BIO_free(bio);
        return base_fail(BASE_ERR_INTERNAL, "cannot set up TLS");
    }
    BIO_set_data(bio, stream);
    BIO_set_init(bio, 1);
    SSL_set_bio(stream->tls, bio, bio);
    if (SSL_is_server(stream->tls))
        SSL_set_accept_state(stream->tls);
    else
        SSL_set_connect_state(stream->tls);
    return BASE_OK;
}

void comm_tls_end(struct comm_stream *stream)
{
    SSL_free(stream->tls);
    stream->tls = NULL;
}

/* Turns OpenSSL's result into a status. BASE_OK: it would block, and *wants says for what. */
static base_status judge(struct comm_stream *s, int result, short *wants)
{
    const char *reason;

    switch (SSL_get_error(s->tls, result)) {
    case SSL_ERROR_WANT_READ:
        *wants = POLLIN;
        return BASE_OK;
    case SSL_ERROR_WANT_WRITE:
        *wants = POLLOUT;
        return BASE_OK;
    case SSL_ERROR_SSL:
        reason = ERR_reason_error_string(ERR_peek_error());
        return base_fail(BASE_ERR_DATA, "%s: TLS: %s", s->peer, reason != NULL ? reason : "failed");
    default:
        return base_fail(BASE_ERR_PEER_LOST, "%s closed the connection", s->peer);
    }
}

base_status comm_tls_handshake(struct comm_stream *stream, bool *done_p)
{
    int result;

    ERR_clear_error();
    result = SSL_do_handshake(stream->tls);
    *done_p = result == 1;
    if (!*done_p) {
        short wants = 0;
        base_status st = judge(stream, result, &wants);

        stream->read_wants = wants;
        return st;
    }
    stream->read_wants = POLLIN;
    if (SSL_session_reused(stream->tls) != 1 || SSL_version(stream->tls) != TLS1_3_VERSION)
        return base_fail(BASE_ERR_DATA, "%s: TLS: the handshake went without the token",
                         stream->peer);
    return BASE_OK;
}

base_status comm_tls_read(struct comm_stream *stream, void *bytes, size_t count, size_t *moved_p)
{
    size_t moved = 0;

    ERR_clear_error();
    stream->read_wants = POLLIN;
    while (*moved_p < count) {
        int result =
            SSL_read_ex(stream->tls, (uint8_t *)bytes + *moved_p, count - *moved_p, &moved);

        if (result == 1)
            *moved_p += moved;
        else
            return *moved_p > 0 ? BASE_OK : judge(stream, result, &stream->read_wants);
    }
    return BASE_OK;
}

/* The header and the beginning of the payload share a record, as they share a packet without TLS.
 */
static size_t join(const void *head, size_t head_count, const void *bytes, size_t count,
                   uint8_t record[RECORD])
{
    size_t first = head_count < RECORD ? head_count : RECORD;
    size_t second = count < RECORD - first ? count : RECORD - first;

    memcpy(record, head, first);
    if (second > 0)
        memcpy(record + first, bytes, second);
    return first + second;
}

base_status comm_tls_write(struct comm_stream *stream, const void *head, size_t head_count,
                           const void *bytes, size_t count, size_t *moved_p)
{
    const uint8_t *in_head = head, *in_bytes = bytes;
    uint8_t record[RECORD];
    size_t moved = 0;

    ERR_clear_error();
    stream->write_wants = POLLOUT;
    while (*moved_p < head_count + count) {
        size_t at = *moved_p;
        int result;

        if (at < head_count)
            result =
                SSL_write_ex(stream->tls, record,
                             join(in_head + at, head_count - at, in_bytes, count, record), &moved);
        else
            result = SSL_write_ex(stream->tls, in_bytes + (at - head_count),
                                  head_count + count - at, &moved);
        if (result != 1)
            return at > 0 ? BASE_OK : judge(stream, result, &stream->write_wants);
        *moved_p += moved;
    }
    return BASE_OK;
}
