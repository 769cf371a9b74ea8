// SPDX-License-Identifier: Apache-2.0

// Package random makes clusters with webhook configurations, scripts for their
// webhooks, and admissions, from a seed: the same seed gives the same Case.
package random

import "math/rand/v2"

// source draws. Every choice of a Case comes from one source, in a fixed order.
type source struct{ *rand.Rand }

func newSource(seed uint64) source {
	return source{rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15))}
}

// percent is true that often.
func (s source) percent(n int) bool { return s.IntN(100) < n }

// between returns a number from low to high, both included.
func (s source) between(low, high int) int { return low + s.IntN(high-low+1) }

// pick returns one of all.
func pick[T any](s source, all ...T) T { return all[s.IntN(len(all))] }

// some returns low to high different ones of all, in any order.
func some[T any](s source, low, high int, all ...T) []T {
	out := make([]T, 0, high)
	for _, i := range s.Perm(len(all))[:min(s.between(low, high), len(all))] {
		out = append(out, all[i])
	}
	return out
}

// pointer returns a pointer to a copy of v.
func pointer[T any](v T) *T { return &v }
