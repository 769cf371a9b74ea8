// SPDX-License-Identifier: Apache-2.0

// Command tally runs a go test -json command, shows what a person wants to see
// of it, and counts the tests, so that several runs can end in one line.
//
//	tally -to FILE COMMAND...   run the command, append its counts to FILE
//	tally -sum FILE             print the sum of the counts in FILE
//
// It exits 1 if the command fails or a test did.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("tally", flag.ContinueOnError)
	flags.SetOutput(stderr)
	to := flags.String("to", "", "append the counts to this `file`")
	sum := flags.String("sum", "", "print the sum of the counts in this `file`")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *sum != "":
		return report(*sum, stdout, stderr)
	case flags.NArg() == 0:
		flags.Usage()
		return 2
	}
	c, err := count(flags.Args(), stdout, stderr)
	if *to != "" {
		err = errors.Join(err, c.appendTo(*to))
	}
	if err != nil {
		fmt.Fprintln(stderr, "tally:", err)
	}
	return c.exitCode(err)
}

// report prints the closing line.
func report(file string, stdout, stderr io.Writer) int {
	c, err := sumOf(file)
	if err != nil {
		fmt.Fprintln(stderr, "tally:", err)
		return 1
	}
	fmt.Fprintln(stdout, c)
	return c.exitCode(nil)
}

// count runs the command. If it fails without a failed test, as when a package
// does not build, that counts as one.
func count(command []string, stdout, stderr io.Writer) (counts, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return counts{failed: 1}, err
	}
	if err := cmd.Start(); err != nil {
		return counts{failed: 1}, err
	}
	c, err := read(pipe, stdout)
	_, drained := io.Copy(stdout, pipe)
	err = errors.Join(err, drained, cmd.Wait())
	if err != nil && c.failed == 0 {
		c.failed = 1
	}
	return c, err
}
