/* SPDX-License-Identifier: MIT
 *
 * The Content-Security-Policy names the digests of the page's style and of its script.
 */
#include "http/page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/mem.h"

enum { DIGEST_TEXT = 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1 };

/* The digest, in base64, of the text between the page's <tag> and </tag>. */
static void digest_of(const char *html, const char *tag, char text[DIGEST_TEXT])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char *open = base_format("<%s>", tag), *close = base_format("</%s>", tag);
    const char *begin = strstr(html, open) + strlen(open);

    SHA256((const unsigned char *)begin, (size_t)(strstr(begin, close) - begin), digest);
    EVP_EncodeBlock((unsigned char *)text, digest, sizeof digest);
    base_free(open);
    base_free(close);
}

void http_answer_page(struct http_request *request, const char *html)
{
    char style[DIGEST_TEXT], script[DIGEST_TEXT], *policy;

    digest_of(html, "style", style);
    digest_of(html, "script", script);
    policy = base_format("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; "
                         "img-src data: blob:; connect-src 'self'; base-uri 'none'; "
                         "form-action 'none'; frame-ancestors 'none'",
                         style, script);
    http_add_header(request, "Content-Security-Policy", policy);
    http_add_header(request, "Referrer-Policy", "no-referrer");
    base_free(policy);
    http_answer(request, 200, "text/html; charset=utf-8", base_strdup(html), strlen(html));
}
