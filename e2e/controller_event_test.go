// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What controllersOn says of Events in a namespace.
const (
	eventsAtOnce    = 5
	eventsPerSecond = 1
)

// compareEvents sends 20 Events to each of 25 namespaces. Which are denied hangs on the
// time: at least as many are taken as may come at once, and no more than have become due
// since; how the others are denied is equal.
func (p *pairOfControllers) compareEvents(t *testing.T) {
	const each = 20
	events := corev1.SchemeGroupVersion.WithResource("events")
	denied := map[string]map[string]int{}
	var mu sync.Mutex
	var senders sync.WaitGroup
	for _, kind := range kindsOfNamespaces {
		for i := range namespacesOfAKind {
			for _, c := range p.clusters {
				namespace := fmt.Sprintf("%s-%d", kind, i)
				senders.Go(func() {
					began, taken := time.Now(), 0
					for n := range each {
						e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", n), Namespace: namespace}}
						e.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "web"}
						e.SetGroupVersionKind(events.GroupVersion().WithKind("Event"))
						answers, err := c.try(t, []step{created(e, events, namespace, "")})
						if err != nil {
							t.Error(err)
							return
						}
						if answers[0].allowed() {
							taken++
							continue
						}
						o := answers[0].outcome()
						if o.Code != http.StatusTooManyRequests || n < eventsAtOnce {
							t.Errorf("%s: event %d in %s: %s", c.name, n, namespace, o.text())
						}
						mu.Lock()
						if denied[namespace] == nil {
							denied[namespace] = map[string]int{}
						}
						denied[namespace][o.text()]++
						mu.Unlock()
					}
					if most := eventsAtOnce + eventsPerSecond*int(time.Since(began)/time.Second+1); taken > most {
						t.Errorf("%s: %d events are taken in %s, want at most %d", c.name, taken, namespace, most)
					}
				})
			}
		}
	}
	senders.Wait()
	for namespace, texts := range denied {
		if len(texts) != 1 {
			t.Errorf("%s: they are denied in several ways: %v", namespace, texts)
		}
	}
	if len(denied) != len(kindsOfNamespaces)*namespacesOfAKind {
		t.Errorf("events are denied in %d namespaces", len(denied))
	}
}
