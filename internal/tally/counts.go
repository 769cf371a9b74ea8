// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
)

// counts are numbers of tests, subtests included.
type counts struct{ passed, failed, skipped int }

// String is the closing line.
func (c counts) String() string {
	line := fmt.Sprintf("%d passed, %d failed", c.passed, c.failed)
	if c.skipped > 0 {
		line += fmt.Sprintf(", %d skipped", c.skipped)
	}
	return line
}

func (c counts) exitCode(err error) int {
	if err != nil || c.failed > 0 {
		return 1
	}
	return 0
}

// appendTo appends the counts to a file, one run a line.
func (c counts) appendTo(file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, c.passed, c.failed, c.skipped); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// sumOf adds up the lines of a file that appendTo has written.
func sumOf(file string) (counts, error) {
	var sum counts
	f, err := os.Open(file)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c counts
		if _, err := fmt.Sscan(lines.Text(), &c.passed, &c.failed, &c.skipped); err != nil {
			return sum, fmt.Errorf("read %s: %w", file, err)
		}
		sum.passed += c.passed
		sum.failed += c.failed
		sum.skipped += c.skipped
	}
	return sum, nil
}
