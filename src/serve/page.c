/* SPDX-License-Identifier: MIT
 *
 * The page is one file without anything from elsewhere. Its Content-Security-Policy names the
 * digests of its one style and its one script, so that a browser runs nothing else in it, whatever
 * a label or a message may contain.
 */
#include "serve/page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/mem.h"

enum { DIGEST_TEXT = 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1 };

/* The digest, in base64, of the text between the page's <tag> and </tag>. */
static void digest_of(const char *tag, char text[DIGEST_TEXT])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char *open = base_format("<%s>", tag), *close = base_format("</%s>", tag);
    const char *begin = strstr(serve_page, open) + strlen(open);

    SHA256((const unsigned char *)begin, (size_t)(strstr(begin, close) - begin), digest);
    EVP_EncodeBlock((unsigned char *)text, digest, sizeof digest);
    base_free(open);
    base_free(close);
}

void serve_page_show(void *context, struct http_request *request)
{
    char style[DIGEST_TEXT], script[DIGEST_TEXT], *policy;

    (void)context;
    digest_of("style", style);
    digest_of("script", script);
    policy = base_format("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; "
                         "img-src data: blob:; connect-src 'self'; base-uri 'none'; "
                         "form-action 'none'; frame-ancestors 'none'",
                         style, script);
    http_add_header(request, "Content-Security-Policy", policy);
    http_add_header(request, "Referrer-Policy", "no-referrer");
    base_free(policy);
    http_answer(request, 200, "text/html; charset=utf-8", base_strdup(serve_page),
                strlen(serve_page));
}
