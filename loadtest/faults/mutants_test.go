// SPDX-License-Identifier: Apache-2.0

package faults

// mutants are the bugs that the rows must notice, in the order of the rows.
var mutants = []mutant{
	{row: "F20", bug: "no circuit ever opens", file: "breaker/window.go",
		old: "return t.failures > 0 && ", new: "return false && t.failures > 0 && ", says: "wait at a time"},
}
