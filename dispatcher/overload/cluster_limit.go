// SPDX-License-Identifier: Apache-2.0

package overload

// perCluster returns how many slots one cluster may have.
func (l *limiter) perCluster() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits.PerCluster
}

// limitTenants sets how many slots one cluster may have. It looks at all clusters, and
// serves those that may have more.
func (l *limiter) limitTenants(slots int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits.PerCluster = slots
	for _, t := range l.tenants {
		l.rerank(t)
	}
	l.serve()
}
