// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
)

// costs is "make cost". A line has the median, the least and the most of a ratio.
func costs(line string) printed {
	return printed{
		test:  test{dir: "conformance", pkg: ".", name: "TestCost", args: []string{"-args", "-cost"}},
		lines: line + `\s+([\d.]+) \(([\d.]+)-([\d.]+)\)`,
		read: func(lines [][]float64) reading {
			l := lines[0]
			return absolute([]float64{l[1], l[0], l[2]}, times)
		},
	}
}

func fault(row, name string) test {
	return test{pkg: "loadtest/faults", name: name, env: []string{"FAULTS=1", "ROW=" + row}}
}

const hedgingLine = `P11 pair \d+: p99\.9 (\S+) without hedging, (\S+) with: \S+ x; ([\d.]+) % extra`

// hedging is the p99.9 without hedging and with it.
func hedging() printed {
	return printed{test: fault("P11", "TestHedging"), lines: hedgingLine, read: func(lines [][]float64) reading {
		return gain(transpose(lines, 1), transpose(lines, 0), "ms")
	}}
}

// extraAttempts is the share of attempts that hedging adds.
func extraAttempts() printed {
	return printed{test: fault("P11", "TestHedging"), lines: hedgingLine, read: func(lines [][]float64) reading {
		return absolute(transpose(lines, 2), "%")
	}}
}

const goodputLine = `P12 at\s+%s x: ([\d.]+) answered a second, ([\d.]+) %% of the peak; shed within (\S+)`

// goodput is what is answered at several times the peak, as a share of it.
func goodput(multiple int) printed {
	return printed{test: fault("P12", "TestGoodput"), lines: fmt.Sprintf(goodputLine, strconv.Itoa(multiple)), read: func(lines [][]float64) reading {
		return absolute(transpose(lines, 1), "%")
	}}
}

// shedding is the longest that the answer took to what was shed at twice the peak
// and above.
func shedding() printed {
	return printed{test: fault("P12", "TestGoodput"), lines: fmt.Sprintf(goodputLine, `(?:2|5|10)`), read: func(lines [][]float64) reading {
		return absolute(transpose(lines, 2), "ms")
	}}
}

// unmeasured is a promise that nothing measures yet.
type unmeasured struct{ why string }

func (u unmeasured) measure(*lab) (reading, error) { return reading{}, fmt.Errorf("%s", u.why) }
