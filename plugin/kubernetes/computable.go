// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// errTooLarge is why quantities are not compared with limits.
var errTooLarge = errors.New("a quantity is too large to be compared with the limits of its namespace")

// areComputable reports whether all quantities of the lists are.
func areComputable(lists ...corev1.ResourceList) bool {
	for _, list := range lists {
		for _, q := range list {
			if !isComputable(q) {
				return false
			}
		}
	}
	return true
}

// isComputable reports whether a quantity is an int64, but for a fraction. The value of a
// larger one is any number, such as 0.
func isComputable(q resource.Quantity) bool {
	return isShort(q) && q.CmpInt64(math.MaxInt64) <= 0 && q.CmpInt64(-math.MaxInt64) >= 0
}

// isShort reports whether a quantity is compared and added at once: one such as 1e999999999,
// which a user may write, takes minutes.
func isShort(q resource.Quantity) bool {
	const digits = 30 // more than an int64 has, and enough for fractions
	if _, ok := q.AsInt64(); ok {
		return true
	}
	d := q.AsDec() // of the copy
	return d.Scale() >= -digits && d.Scale() <= digits && d.UnscaledBig().BitLen() <= 2*64
}

// isLarger reports whether a quantity is larger than another one, or perhaps is.
func isLarger(q, than resource.Quantity) bool {
	if !isShort(q) || !isShort(than) {
		return q != than
	}
	return q.Cmp(than) > 0
}
