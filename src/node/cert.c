/* SPDX-License-Identifier: Apache-2.0 */
/* cert.c - reads certificates, and makes one that is good for this machine where nobody gave one. */
#include "node/cert.h"

#include "base/mem.h"
#include "conf/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PEM_MAX = 1 << 20, SERIAL = 16, DAY_S = 86400, IP_MAX = 16, BEFORE_S = 3600 };

/* A key that is not needed any more is not left in memory. */
static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void bh_cert_fini(struct bh_cert *c)
{
    free(c->cert_pem);
    wipe(c->key_pem);
    *c = (struct bh_cert){.made = false};
}

static gnutls_datum_t datum(const char *text)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)text, .size = (unsigned)strlen(text)};
}

/* ---- what a certificate says ---- */

/* The first of a chain, which is the machine's own. */
static int read_cert(const char *pem, gnutls_x509_crt_t *ret, struct bh_err *err)
{
    const gnutls_datum_t text = datum(pem);
    int rc = gnutls_x509_crt_init(ret);
    if (rc < 0)
        return bh_fail(err, BH_SYSTEM, "GnuTLS: %s", gnutls_strerror(rc));
    rc = gnutls_x509_crt_import(*ret, &text, GNUTLS_X509_FMT_PEM);
    if (rc == 0)
        return BH_OK;
    gnutls_x509_crt_deinit(*ret);
    return bh_fail(err, BH_INVALID, "no certificate: %s", gnutls_strerror(rc));
}

static int describe(struct bh_cert *c, gnutls_x509_crt_t crt, struct bh_err *err)
{
    unsigned char hash[32];
    size_t n = sizeof(hash);
    const int rc = gnutls_x509_crt_get_fingerprint(crt, GNUTLS_DIG_SHA256, hash, &n);
    const time_t until = gnutls_x509_crt_get_expiration_time(crt);
    if (rc < 0 || until < 0)
        return bh_fail(err, BH_INVALID, "no certificate: %s", rc < 0 ? gnutls_strerror(rc) : "no end");
    for (size_t i = 0; i < n; i++)
        (void)snprintf(c->print + 3 * i, sizeof(c->print) - 3 * i, "%02X%s", hash[i], i + 1 < n ? ":" : "");
    c->until_ms = (uint64_t)until * 1000;
    return BH_OK;
}

/* Is the key the certificate's? */
static int match(gnutls_x509_crt_t crt, const char *key_pem, struct bh_err *err)
{
    unsigned char of_crt[64], of_key[64];
    size_t n_crt = sizeof(of_crt), n_key = sizeof(of_key);
    const gnutls_datum_t text = datum(key_pem);
    gnutls_x509_privkey_t key;
    int rc = gnutls_x509_privkey_init(&key);
    if (rc < 0)
        return bh_fail(err, BH_SYSTEM, "GnuTLS: %s", gnutls_strerror(rc));
    rc = gnutls_x509_privkey_import2(key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (rc == 0)
        rc = gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, of_crt, &n_crt);
    if (rc == 0)
        rc = gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &n_key);
    gnutls_x509_privkey_deinit(key);
    if (rc < 0)
        return bh_fail(err, BH_INVALID, "no key that could be used: %s", gnutls_strerror(rc));
    return n_crt == n_key && memcmp(of_crt, of_key, n_crt) == 0
               ? BH_OK
               : bh_fail(err, BH_INVALID, "the key is not the certificate's");
}

static int check(struct bh_cert *c, struct bh_err *err)
{
    gnutls_x509_crt_t crt;
    int rc = read_cert(c->cert_pem, &crt, err);
    if (rc < 0)
        return rc;
    rc = match(crt, c->key_pem, err);
    if (rc == BH_OK)
        rc = describe(c, crt, err);
    gnutls_x509_crt_deinit(crt);
    return rc;
}

int bh_cert_load(const char *cert_path, const char *key_path, struct bh_cert *ret, struct bh_err *err)
{
    size_t n;
    *ret = (struct bh_cert){.made = false};
    int rc = bh_file_read(cert_path, PEM_MAX, &ret->cert_pem, &n, err);
    if (rc == BH_OK)
        rc = bh_file_read(key_path, PEM_MAX, &ret->key_pem, &n, err);
    if (rc == BH_OK && (rc = check(ret, err)) < 0)
        rc = bh_wrap(err, rc, "%s, %s", cert_path, key_path);
    if (rc < 0)
        bh_cert_fini(ret);
    return rc;
}

/* ---- one of our own ---- */

static size_t address_bytes(const char *address, unsigned char ret[IP_MAX])
{
    if (inet_pton(AF_INET, address, ret) == 1)
        return sizeof(struct in_addr);
    return inet_pton(AF_INET6, address, ret) == 1 ? sizeof(struct in6_addr) : 0;
}

static int add_address(gnutls_x509_crt_t crt, const char *address)
{
    unsigned char ip[IP_MAX];
    const size_t n = address_bytes(address, ip);
    return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, ip, (unsigned)n,
                                                GNUTLS_FSAN_APPEND);
}

static int add_name(gnutls_x509_crt_t crt, const char *name)
{
    return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name, (unsigned)strlen(name),
                                                GNUTLS_FSAN_APPEND);
}

/* Good for the host's name, for itself by name and address, and for where it listens. */
static int fill(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, const char *host, const char *address,
                uint64_t now_ms)
{
    unsigned char serial[SERIAL];
    const time_t now = (time_t)(now_ms / 1000);
    int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
    serial[0] &= 0x7f; /* positive */
    if (rc >= 0)
        rc = gnutls_x509_crt_set_version(crt, 3);
    if (rc >= 0)
        rc = gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
    if (rc >= 0)
        rc =
            gnutls_x509_crt_set_activation_time(crt, now - BEFORE_S); /* of clocks that are a little behind */
    if (rc >= 0)
        rc = gnutls_x509_crt_set_expiration_time(crt, now + (time_t)BH_CERT_DAYS * DAY_S);
    if (rc >= 0)
        rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, "bulkheadd", 9);
    if (rc >= 0)
        rc = add_name(crt, host);
    if (rc >= 0 && strcmp(host, "localhost") != 0)
        rc = add_name(crt, "localhost");
    if (rc >= 0)
        rc = add_address(crt, "127.0.0.1");
    if (rc >= 0)
        rc = add_address(crt, "::1");
    if (rc >= 0 && address && strcmp(address, "127.0.0.1") != 0 && strcmp(address, "::1") != 0)
        rc = add_address(crt, address);
    if (rc >= 0)
        rc = gnutls_x509_crt_set_key(crt, key);
    if (rc >= 0)
        rc = gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
    if (rc >= 0)
        rc = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
    if (rc >= 0)
        rc = gnutls_x509_crt_set_basic_constraints(crt, 0, -1);
    return rc < 0 ? rc : gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0);
}

static char *take_text(gnutls_datum_t *d)
{
    char *text = bh_alloc(d->size + 1, 1);
    memcpy(text, d->data, d->size);
    explicit_bzero(d->data, d->size);
    gnutls_free(d->data);
    return text;
}

static int export(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, struct bh_cert *ret)
{
    gnutls_datum_t text = {0};
    int rc = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text);
    if (rc < 0)
        return rc;
    ret->cert_pem = take_text(&text);
    rc = gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, 0, &text);
    if (rc >= 0)
        ret->key_pem = take_text(&text);
    return rc;
}

static int make(const char *host, const char *address, uint64_t now_ms, struct bh_cert *ret,
                struct bh_err *err)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t crt = NULL;
    int rc = gnutls_x509_privkey_init(&key);
    if (rc >= 0)
        rc = gnutls_x509_crt_init(&crt);
    if (rc >= 0)
        rc = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                          GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    if (rc >= 0)
        rc = fill(crt, key, host, address, now_ms);
    if (rc >= 0)
        rc = export(crt, key, ret);
    if (crt)
        gnutls_x509_crt_deinit(crt);
    if (key)
        gnutls_x509_privkey_deinit(key);
    ret->made = true;
    return rc < 0 ? bh_fail(err, BH_SYSTEM, "a certificate cannot be made: %s", gnutls_strerror(rc))
                  : check(ret, err);
}

/* ---- its file ---- */

static int write_part(const char *part, const struct bh_cert *c)
{
    (void)unlink(part);
    const int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    const int n = dprintf(fd, "%s%s", c->cert_pem, c->key_pem);
    const int bad = n < 0 || fsync(fd) < 0 ? errno : 0;
    return close(fd) < 0 && !bad ? -errno : -bad;
}

static int save(const char *path, const struct bh_cert *c, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const char *part = bh_arena_printf(&arena, "%s.part", path);
    int bad = write_part(part, c);
    if (!bad && rename(part, path) < 0)
        bad = -errno;
    if (bad)
        (void)unlink(part);
    bh_arena_fini(&arena);
    return bad ? bh_fail(err, BH_SYSTEM, "%s: %s", path, strerror(-bad)) : BH_OK;
}

/* BH_DENIED: somebody else could have read the key, or put it there. */
static int load_own(const char *path, struct bh_cert *ret, struct bh_err *err)
{
    struct stat st;
    size_t n;
    if (lstat(path, &st) < 0)
        return bh_fail(err, errno == ENOENT ? BH_NOT_FOUND : BH_SYSTEM, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return bh_fail(err, BH_DENIED,
                       "%s is no plain file that is root's alone: remove it, and another is made", path);
    int rc = bh_file_read(path, PEM_MAX, &ret->cert_pem, &n, err);
    if (rc < 0)
        return rc;
    char *key = strstr(ret->cert_pem, "-----BEGIN PRIVATE KEY-----");
    if (!key)
        return bh_fail(err, BH_INVALID, "%s has no key", path);
    ret->key_pem = bh_alloc(strlen(key) + 1, 1);
    memcpy(ret->key_pem, key, strlen(key));
    explicit_bzero(key, strlen(key));
    return check(ret, err);
}

static bool still_good(const struct bh_cert *c, const char *host, const char *address, uint64_t now_ms)
{
    gnutls_x509_crt_t crt;
    unsigned char ip[IP_MAX];
    const size_t n = address ? address_bytes(address, ip) : 0;
    if (c->until_ms < now_ms + (uint64_t)BH_CERT_RENEW_DAYS * DAY_S * 1000 ||
        read_cert(c->cert_pem, &crt, NULL) < 0)
        return false;
    bool good = gnutls_x509_crt_check_hostname(crt, host) != 0;
    good = good && (!n || gnutls_x509_crt_check_ip(crt, ip, (unsigned)n, 0) != 0);
    gnutls_x509_crt_deinit(crt);
    return good;
}

int bh_cert_own(const char *path, const char *host, const char *address, uint64_t now_ms, struct bh_cert *ret,
                struct bh_err *err)
{
    *ret = (struct bh_cert){.made = false};
    int rc = load_own(path, ret, err);
    if (rc == BH_OK && still_good(ret, host, address, now_ms))
        return BH_OK;
    bh_cert_fini(ret);
    /* One that is there and cannot be read as one is of no use to anybody; all else is somebody's to look at. */
    if (rc != BH_OK && rc != BH_NOT_FOUND && rc != BH_INVALID)
        return rc;
    const char *named = address && address_bytes(address, (unsigned char[IP_MAX]){0}) ? address : NULL;
    rc = make(host, named, now_ms, ret, err);
    if (rc == BH_OK)
        rc = save(path, ret, err);
    if (rc < 0)
        bh_cert_fini(ret);
    return rc;
}
