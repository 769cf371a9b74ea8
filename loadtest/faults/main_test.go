// SPDX-License-Identifier: Apache-2.0

// Package faults runs the fault matrix: each row breaks something around the
// shipped binary while clusters ask for admissions, and package history decides
// which answers were allowed.
//
// "make faults" runs every row in smoke size, with FULL=1 in full size, with
// ROW=F8 one row only (ROW=F6/expired one variant), with SEED=7 another load, with RACE=1 a binary that looks
// for data races. ROW=P11, P12 and MIXED are figures and a mixture of faults. BITE=1 has each row
// fail: against a dispatcher with a bug. Among all other tests only a few short
// rows run.
package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

var (
	binary string // of the dispatcher, built once
	every  = os.Getenv("FAULTS") != ""
	full   = os.Getenv("FULL") != ""
	race   = os.Getenv("RACE") != "" // of the binary
	only   = os.Getenv("ROW")
	seed   = number("SEED", 1)
)

func number(name string, otherwise uint64) uint64 {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dispatcher-faults-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if given := os.Getenv("DISPATCHER"); given != "" {
		binary = given
		progress("%s", header())
		m.Run()
		return
	}
	binary = filepath.Join(dir, "dispatcher")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/dispatcher")
	if race {
		build.Args = append(build.Args[:2:2], append([]string{"-race"}, build.Args[2:]...)...)
	}
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the dispatcher: %v\n%s", err, out))
	}
	progress("%s", header())
	m.Run()
}

// progress tells whoever waits how far the matrix is.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stdout, "progress: "+format+"\n", args...)
}

func header() string {
	return fmt.Sprintf("%-18s %-52s %6s %7s %6s %6s %5s %5s %7s %7s %8s %8s %8s %8s %9s %8s", "row", "fault", "calls", "allowed", "denied", "failed", "shed", "extra",
		"direct", "its p90", "control", "p50", "p90", "p99", "bound", "stall")
}

// short are the rows that run among all other tests.
var short = []string{"F1", "F37/F1", "G2"}
