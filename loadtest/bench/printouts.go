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

const (
	hedgingLine = `%s pair \d+: p99\.9 (\S+) without hedging, (\S+) with: \S+ x; ([\d.]+) %% extra`
	theoryLine  = `%s pair \d+: p99\.9 (\S+) in theory, with a delay of (\S+): ([\d.]+) x`
)

// hedging is the p99.9 of a row without hedging and with it.
func hedging(row string) printed {
	return printed{test: fault("P11", "TestHedging"), lines: fmt.Sprintf(hedgingLine, row), read: func(lines [][]float64) reading {
		return gain(transpose(lines, 1), transpose(lines, 0), "ms")
	}}
}

// theory is the p99.9 with hedging, against the best that hedging can do: the
// p99.9 of min(A, d+B), where A and B are independent draws from the times that the
// run without hedging took, and d is the dispatcher's delay by the same times: their
// p95, at least 1 ms and at most four medians.
func theory(row string) printed {
	return printed{test: fault("P11", "TestHedging"), lines: fmt.Sprintf(theoryLine, row), read: func(lines [][]float64) reading {
		best, ratio := transpose(lines, 0), transpose(lines, 2)
		got := reading{peer: best, unit: "ms", score: ratio, remark: "with a delay of " + number(spreadOf(transpose(lines, 1)).Median) + " ms"}
		for i := range best {
			got.ours = append(got.ours, best[i]*ratio[i])
		}
		return got
	}}
}

// extraAttempts is the share of attempts that hedging adds in a row.
func extraAttempts(row string) printed {
	return printed{test: fault("P11", "TestHedging"), lines: fmt.Sprintf(hedgingLine, row), read: func(lines [][]float64) reading {
		return absolute(transpose(lines, 2), "%")
	}}
}

const goodputLine = `P12 at\s+%s x: ([\d.]+) answered a second, ([\d.]+) %% of the best; shed within (\S+)`

// goodput is what is answered at several times the load that the limit lets in, as a
// share of the best that is answered at any load of the run.
func goodput(multiple int) printed {
	return printed{test: fault("P12", "TestGoodput"), lines: fmt.Sprintf(goodputLine, strconv.Itoa(multiple)), read: func(lines [][]float64) reading {
		return absolute(transpose(lines, 1), "%")
	}}
}

// shedding is the longest that the answer took to what was shed at twice that load
// and above.
func shedding() printed {
	return printed{test: fault("P12", "TestGoodput"), lines: fmt.Sprintf(goodputLine, `(?:2|5|10)`), read: func(lines [][]float64) reading {
		return absolute(transpose(lines, 2), "ms")
	}}
}
