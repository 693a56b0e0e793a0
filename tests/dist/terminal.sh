#!/usr/bin/env bash
# What a person sees: one progress line that fits the terminal, at 80 and at 40 columns and after the
# terminal was resized, of one process and of several workers; Ctrl-C; nothing of it left at the end.
source "$(dirname "$0")/../support/dist.bash"
command -v tmux >/dev/null || { echo "skipped: there is no tmux" && exit 77; }
session=none
trap 'tmux -L "$session" kill-server 2>/dev/null; rm -rf "$work"' EXIT

screen() { tmux -L "$session" capture-pane -p -t 0; }

# bar COLUMNS: waits for a progress line, then looks at ten screens: never two of them, none too long.
bar() {
    for _ in $(seq 1500); do screen | grep -q '^\[.*step' && break; sleep 0.02; done
    screen | grep -q '^\[.*step' || fail "no progress line at $1 columns: $(screen)"
    for _ in $(seq 10); do
        screen >shown
        grep '^\[[=> ]' shown >bars
        [ "$(wc -l <bars)" -le 1 ] || fail "several progress lines at $1 columns: $(cat shown)"
        [ "$(wc -L <bars)" -lt "$1" ] || fail "a progress line of $(wc -L <bars) in $1 columns: $(cat shown)"
        sleep 0.1
    done
}

for workers in 1 2; do
    session=paceline-$$-$workers # a server that ends may still have its socket
    tmux -L "$session" -f /dev/null new-session -d -x 80 -y 24 \
        "'$paceline' train --model mlp:64x2 --data synthetic:train=640000,test=64 --epochs 1000 --log-every 0 \
            --no-checkpoint --eval-every 0 --threads 1 --workers $workers --run bar-$workers; echo code \$?; sleep 60"
    bar 80
    tmux -L "$session" resize-window -t 0 -x 40 -y 24
    sleep 0.5 # one more line is drawn
    bar 40
    tmux -L "$session" send-keys -t 0 C-c
    for _ in $(seq 1500); do screen | grep -q '^code' && break; sleep 0.02; done
    screen >shown
    grep -q '^code 130' shown || fail "Ctrl-C with $workers workers: $(cat shown)"
    grep -q 'stopped after step' shown || fail "no word of the stop: $(cat shown)"
    grep -q '^\[.*step' shown && fail "the progress line is still there: $(cat shown)"
    [ "$workers" = 1 ] || ! grep -q 'worker 1:' shown || fail "rank 0 is labelled: $(cat shown)"
    tmux -L "$session" kill-server
done

# Beside the bar a log line comes every ten seconds, and for each N steps only if that was asked for.
for every in -1 20; do
    session=paceline-$$-log$every
    tmux -L "$session" -f /dev/null new-session -d -x 100 -y 100 \
        "'$paceline' train --model mlp:8x1 --data synthetic:train=6400,test=64 --epochs 2 --log-every $every \
            --threads 1 --run every$every; echo code \$?; sleep 60"
    for _ in $(seq 1500); do screen | grep -q '^code' && break; sleep 0.02; done
    lines=$(screen | grep -c '^step ')
    [ "$lines" = $((every < 0 ? 0 : 10)) ] || fail "$lines log lines with --log-every $every: $(screen)"
    tmux -L "$session" kill-server
done

# Each worker's own lines are in the run's folder, also those that only rank 0 shows.
expect 0 "$paceline" train --model mlp:8x1 --data synthetic:train=640,test=64 --epochs 1 --log-every 5 --threads 1 --workers 2 --run logs
for id in 1 2; do
    grep -qE '^[0-9T:-]+Z step +5 ' runs/logs/log-$id.txt || fail "log-$id.txt: $(cat runs/logs/log-$id.txt)"
done
grep -q 'worker 2:' err && fail "worker 2 speaks: $(cat err)"
expect 0 "$paceline" train --model mlp:8x1 --data synthetic:train=640,test=64 --epochs 1 --quiet --run quiet
grep -q 'epoch 1' runs/quiet/log-0.txt || fail "--quiet leaves no log"
[ ! -s err ] || fail "--quiet says: $(cat err)"
