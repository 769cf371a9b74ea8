// SPDX-License-Identifier: Apache-2.0

// Package sample draws requests at random that admission controllers of kube-apiserver look
// at, and the objects that their clusters have, for tests that compare answers.
package sample

import "math/rand/v2"

// Dice draw what controllers look at. Equal seeds draw equal things.
type Dice struct{ *rand.Rand }

// NewDice returns dice for one of several streams of a seed.
func NewDice(seed, stream uint64) Dice { return Dice{rand.New(rand.NewPCG(seed, stream))} }

// One reports true once in n.
func (d Dice) One(n int) bool { return d.IntN(n) == 0 }

// Pick returns one of the values.
func Pick[T any](d Dice, list ...T) T { return list[d.IntN(len(list))] }

// Maybe returns a pointer to one of the values, or nil.
func Maybe[T any](d Dice, list ...T) *T {
	if d.One(2) {
		return nil
	}
	return new(Pick(d, list...))
}

// Some returns a list of at most n, and mostly of few.
func Some[T any](d Dice, n int, draw func() T) (list []T) {
	for range d.IntN(d.IntN(n+1) + 1) {
		list = append(list, draw())
	}
	return list
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
