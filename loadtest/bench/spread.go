// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// spread is what came out in several rounds.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf returns nil if there are no values.
func spreadOf(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return &spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// quotients divides round by round, so that whatever slowed a round down slowed
// both sides of it.
func quotients(a, b []float64) []float64 {
	list := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			list = append(list, a[i]/b[i])
		}
	}
	return list
}

// String writes median [min-max].
func (s *spread) String() string {
	if s == nil {
		return ""
	}
	if s.Min == s.Max {
		return number(s.Median)
	}
	return fmt.Sprintf("%s [%s-%s]", number(s.Median), number(s.Min), number(s.Max))
}

// milliseconds of a duration.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// number writes three significant digits, and no exponent.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return fmt.Sprintf("%.*f", max(0, min(digits, 3)), v)
}
