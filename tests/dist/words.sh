#!/usr/bin/env bash
# tools/words counts a small tree right: words, examples quoted in the style, functions called once.
source "$(dirname "$0")/../support/dist.bash"
mkdir -p tree/some tree/other tree/plug
cat >tree/some/a.c <<'END'
/* Nobody calls this, and behind a failure there is no once(). A proxy: behind a proxy. */
static int once(int x)
{
    return x;
}

static int twice(int x);

static int twice(int x) /* what somebody left behind */
{
    return x > 0 ? once(x) : 0;
}

static int in_a_table(int x)
{
    return twice(x) + twice(x + 1);
}

static int (*const table[])(int) = {in_a_table};

int main(void)
{
    const char *text = "once(1), nobody's";
    return in_a_table(table[0](text[0]));
}
END
cat >tree/other/b.md <<'END'
The rest
holds anything. A passenger waits behind
the barrier.
END
cat >tree/plug/all-ring.c <<'END'
static int run(int x)
{
    x++;
    x *= 2;
    x++;
    x *= 3;
    x++;
    return x;
}

static int ring_cost(int x)
{
    return run(x);
}

const struct plug_in plug_in_all_ring = {
    .cost = ring_cost,
    .run = run,
};
END
expect 0 "$root/tools/words" --list tree
grep -Eq '^tree/some +3 +1 +0 +1 +1 +0 +4 +25\.0%$' out || fail "tree/some is counted wrong: $(cat out)"
grep -Eq '^tree/other +0 +1 +2 +0 +0 +0 +0$' out || fail "tree/other is counted wrong: $(cat out)"
grep -Eq '^tree/plug +0 +0 +0 +0 +0 +1 +2 +0\.0%$' out || fail "tree/plug is counted wrong: $(cat out)"
grep -Eq '^total +3 +2 +2 +1 +1 +1 +6 +16\.7%$' out || fail "the total is wrong: $(cat out)"
grep -Fxq 'once   tree/some/a.c:2: static int once(int x)' out || fail "once() is not listed: $(cat out)"
grep -Fxq 'behind tree/other/b.md:2: holds anything. A passenger waits behind' out || fail "a place is missing: $(cat out)"
expect 0 "$root/tools/words" tree/other/b.md
[ "$(wc -l <out)" = 3 ] || fail "one file is not one row: $(cat out)"
expect 1 "$root/tools/words" missing
grep -q 'words: there is no missing' err || fail "no word of what is missing: $(cat err)"
