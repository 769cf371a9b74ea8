// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// load are clients that create ConfigMaps without pause, one of them kubectl.
type load struct {
	t    *testing.T
	stop context.CancelFunc
	wg   sync.WaitGroup
	done atomic.Int64

	mu       sync.Mutex
	failures []error
}

func startLoad(t *testing.T, c *cluster, namespace string, callers int) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{t: t, stop: stop}
	create := func(name string) error {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := c.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), m, metav1.CreateOptions{})
		return err
	}
	kubectl := func(name string) error {
		out, err := c.kubectl(t, "create", "configmap", name, "-n", namespace)
		if err != nil {
			return fmt.Errorf("kubectl: %w: %s", err, out)
		}
		return nil
	}
	for i := range callers {
		l.wg.Go(func() { l.repeat(ctx, fmt.Sprintf("client-%d", i), create) })
	}
	l.wg.Go(func() { l.repeat(ctx, "kubectl", kubectl) })
	t.Cleanup(func() { l.end() })
	return l
}

func (l *load) repeat(ctx context.Context, name string, do func(string) error) {
	for i := 0; ctx.Err() == nil; i++ {
		err := do(fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			l.mu.Lock()
			l.failures = append(l.failures, err)
			l.mu.Unlock()
		}
		l.done.Add(1)
	}
}

func (l *load) calls() int64 { return l.done.Load() }

// until returns when n calls have been made.
func (l *load) until(n int64) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); l.calls() < n; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%d calls of %d in %v", l.calls(), n, patience)
		}
	}
}

// end stops the clients between two calls and returns what failed.
func (l *load) end() []error {
	l.stop()
	l.wg.Wait()
	return l.failures
}
