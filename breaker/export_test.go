// SPDX-License-Identifier: Apache-2.0

package breaker

// Remembered returns the number of clusters that are known.
func (b *Breaker) Remembered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.clusters)
}
