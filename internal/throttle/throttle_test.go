// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"fmt"
	"testing"
	"time"
)

func TestThrottle(t *testing.T) {
	var throttle Throttle
	now := time.Now()
	passed := 0
	for range 1000 {
		if _, ok := throttle.Pass(now); ok {
			passed++
		}
	}
	if passed != Burst {
		t.Errorf("%d records passed, want %d", passed, Burst)
	}
	if dropped, ok := throttle.Pass(now.Add(Window)); !ok || dropped != 1000-Burst {
		t.Errorf("pass = %d, %v after the window", dropped, ok)
	}
	if dropped, ok := throttle.Pass(now.Add(Window)); !ok || dropped != 0 {
		t.Errorf("pass = %d, %v: the same are counted twice", dropped, ok)
	}
}

// What one cluster causes drops no record of another, however many there are.
func TestPerCluster(t *testing.T) {
	p := PerCluster{Burst: 2, Window: time.Second}
	now := time.Now()
	for range 100 {
		p.Pass("east", now)
	}
	if _, ok := p.Pass("west", now); !ok {
		t.Error("a record of west is dropped")
	}
	if dropped, ok := p.Pass("east", now.Add(time.Second)); !ok || dropped != 98 {
		t.Errorf("pass = %d, %v after the window", dropped, ok)
	}
	for i := range 3 * maxClusters {
		p.Pass(fmt.Sprint("c", i), now)
	}
	if len(p.each) > maxClusters {
		t.Errorf("%d clusters are remembered", len(p.each))
	}
	later := now.Add(Window + time.Second)
	if p.Pass("new", later); len(p.each) > 10 {
		t.Errorf("%d clusters are remembered that have been silent", len(p.each))
	}
}

// A cluster that is gone is forgotten, whatever was dropped at its end.
func TestPerClusterForgets(t *testing.T) {
	p := PerCluster{Burst: 1, Window: time.Second}
	now := time.Now()
	for i := range maxClusters {
		p.Pass(fmt.Sprint("c", i), now)
		p.Pass(fmt.Sprint("c", i), now)
	}
	if p.Pass("new", now.Add(Window)); len(p.each) != maxClusters {
		t.Errorf("%d clusters are remembered that have something to tell", len(p.each))
	}
	if p.Pass("new", now.Add(silence)); len(p.each) != 1 {
		t.Errorf("%d clusters are remembered that have been silent", len(p.each))
	}
}
