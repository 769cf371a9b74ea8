// SPDX-License-Identifier: Apache-2.0

// Package fuzz runs fuzz targets at native speed. The engine of "go test -fuzz"
// counts coverage, which costs more than the check of a scanner does. With -inputs,
// a target plays that many inputs without the engine:
//
//	go test ./codec -run '^FuzzDecode$' -inputs 20000000 -seed 7 -timeout 0
package fuzz

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	inputs = flag.Int64("inputs", 0, "how many `inputs` a fuzz target plays without the fuzzing engine")
	seed   = flag.Uint64("seed", 1, "the `number` that these inputs are made from")
)

// mostFailures ends a target: more of them rarely tell more.
const mostFailures = 10

// Run is f.Fuzz(check), where check is a function of a testing.TB and of what
// inputs consist of.
//
// With -inputs it then makes so many inputs of the seeds and of the corpus in
// testdata/fuzz, and plays them on GOMAXPROCS goroutines at a time, so that check
// must not share what is written. Equal seeds make equal inputs. It writes an
// input that fails to testdata/fuzz, where every later run of the target finds it,
// and a line of what it did to standard output, or more if it takes minutes. What no
// program recovers from, such as a stack that is too deep, ends the process.
func Run(f *testing.F, check any) {
	f.Helper()
	r := run{check: reflect.ValueOf(check), seed: *seed, inputs: *inputs, target: f.Name()}
	var mu sync.Mutex
	f.Fuzz(reflect.MakeFunc(forT(r.check.Type()), func(args []reflect.Value) []reflect.Value {
		mu.Lock()
		r.corpus = append(r.corpus, append([]reflect.Value(nil), args[1:]...))
		mu.Unlock()
		return r.check.Call(args)
	}).Interface())
	if r.inputs > 0 {
		r.playAll(f)
	}
}

// WithoutEngine reports whether the targets make their inputs by themselves, so many
// that none needs to stand for several.
func WithoutEngine() bool { return *inputs > 0 }

// forT is the type of a check that takes a *testing.T, which f.Fuzz wants.
func forT(check reflect.Type) reflect.Type {
	in := []reflect.Type{reflect.TypeFor[*testing.T]()}
	for i := 1; i < check.NumIn(); i++ {
		in = append(in, check.In(i))
	}
	return reflect.FuncOf(in, nil, false)
}

// run is a target that plays inputs without the engine.
type run struct {
	target   string
	check    reflect.Value
	corpus   [][]reflect.Value
	seed     uint64
	inputs   int64
	played   atomic.Int64
	failures atomic.Int64
}

func (r *run) playAll(f *testing.F) {
	f.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // of a heap of a few MB
	begin := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1); i <= r.inputs && r.failures.Load() < mostFailures; i = next.Add(1) {
				in := r.input(uint64(i))
				if fault := r.play(in); fault != "" {
					r.failures.Add(1)
					f.Errorf("input %d of seed %d fails, see %s: %s", i, r.seed, r.keep(f, in), fault)
				}
				if n := r.played.Add(1); n%max(r.inputs/10, 1) == 0 && n < r.inputs && time.Since(begin) > time.Minute {
					fmt.Fprintln(os.Stdout, r.row(n, time.Since(begin)))
				}
			}
		})
	}
	wg.Wait()
	fmt.Fprintln(os.Stdout, r.row(r.played.Load(), time.Since(begin)))
}

// row says what became of n inputs.
func (r *run) row(n int64, took time.Duration) string {
	return fmt.Sprintf("%-20s %10d inputs %8.1f s %9.0f /s %3d failures", r.target, n, took.Seconds(), float64(n)/took.Seconds(), r.failures.Load())
}

// play returns what is wrong with check on an input, if anything is.
func (r *run) play(in []reflect.Value) (fault string) {
	a := &attempt{}
	defer func() {
		switch p := recover().(type) {
		case nil, ended:
		default:
			a.fail(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
		}
		for i := len(a.cleanups) - 1; i >= 0; i-- {
			a.cleanups[i]()
		}
		fault = a.fault
	}()
	r.check.Call(append([]reflect.Value{reflect.ValueOf(a)}, in...))
	return ""
}

// keep writes an input as the engine does, and returns where.
func (r *run) keep(f *testing.F, in []reflect.Value) string {
	text := "go test fuzz v1\n"
	for _, v := range in {
		switch v := v.Interface().(type) {
		case []byte:
			text += fmt.Sprintf("[]byte(%q)\n", v)
		case string:
			text += fmt.Sprintf("string(%q)\n", v)
		default:
			text += fmt.Sprintf("%T(%v)\n", v, v)
		}
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // it never fails
	path := filepath.Join("testdata", "fuzz", r.target, fmt.Sprintf("%016x", sum.Sum64()))
	err := os.MkdirAll(filepath.Dir(path), 0o750)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		f.Errorf("%v, so it is only here: %s", err, text)
	}
	return path
}

// attempt is the testing.TB of one input: the test goes on after one that fails. It
// has what checks need of a testing.TB, and fails where a check calls more.
type attempt struct {
	testing.TB
	cleanups []func()
	fault    string
}

// ended is the panic that ends an attempt.
type ended struct{}

func (a *attempt) fail(fault string) { a.fault = strings.TrimSpace(a.fault + "\n" + fault) }

func (a *attempt) Helper()                           {}
func (a *attempt) Cleanup(f func())                  { a.cleanups = append(a.cleanups, f) }
func (a *attempt) Errorf(format string, args ...any) { a.fail(fmt.Sprintf(format, args...)) }
func (a *attempt) Fatalf(format string, args ...any) { a.Errorf(format, args...); panic(ended{}) }
func (a *attempt) Error(args ...any)                 { a.fail(fmt.Sprintln(args...)) }
func (a *attempt) Fatal(args ...any)                 { a.Error(args...); panic(ended{}) }
func (a *attempt) Skip(...any)                       { panic(ended{}) }
