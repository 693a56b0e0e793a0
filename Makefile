# The front door. Each target is one line over CMake and the scripts of tools/; `make help` lists
# them. Builds go to build/ (yours) and build-*/ (the checks'), never into the tree.
PREFIX ?= /usr/local
DESTDIR ?=
export DESTDIR

.PHONY: all help deps demo test check bench soak install deb clean
all: build/build.ninja           ## configure and build: build/paceline
	@cmake --build build

build/build.ninja:
	@tools/deps --check build
	@cmake --preset release

help:                            ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

deps:                            ## install the Debian packages that are missing
	@tools/deps build demo

demo:                            ## train on Fashion-MNIST and show what happened
	@tools/deps build demo
	@tools/demo

test:                            ## everything CI runs
	@tools/test

check:                           ## the quick half of it: build, format, arrows, unit tests
	@tools/test --quick

bench: all                       ## measure
	@tools/bench

soak:                            ## long runs: full fuzzing with coverage, long kill tests
	@tools/soak

install: all                     ## binary, man page, completion, torch_weights.py (PREFIX, DESTDIR)
	@cmake --build build --target installables
	@cmake --install build --prefix $(PREFIX)

deb: all                         ## a Debian package of the same: build/packages/
	@cmake --build build --target installables
	@cpack --config build/CPackConfig.cmake -B build/packages

clean:                           ## remove every build folder
	@rm -rf build build-*
