// SPDX-License-Identifier: Apache-2.0

package config_test

import "testing"

// What is said under limits holds in each replica, whatever is said of the fleet; that is
// divided, with slack for the cluster whose connections chance has brought to one replica.
func TestPartsOfAFleet(t *testing.T) {
	for _, c := range []struct {
		more                          string
		replicas, calls, ofOneCluster int
	}{
		{"", 1, 512, 512},
		{"", 100, 512, 512},
		{"fleet: {replicas: 1, callsPerEndpoint: 400, admissionsPerCluster: 400}\n", 1, 400, 400},
		{"fleet: {replicas: 1, callsPerEndpoint: 4000, admissionsPerCluster: 4000}\n", 1, 512, 512},
		{"fleet: {replicas: 1, callsPerEndpoint: 400, admissionsPerCluster: 400}\n", 10, 40, 80},
		{"fleet: {replicas: 1, callsPerEndpoint: 400, admissionsPerCluster: 400}\n", 1000, 1, 16},
		{"limits: {callsPerEndpoint: 20, admissionsPerCluster: 20}\nfleet: {replicas: 1, callsPerEndpoint: 400, admissionsPerCluster: 400}\n", 10, 20, 20},
	} {
		cfg, _ := load(t, minimal+c.more)
		if calls, admissions := cfg.CallsPerEndpoint(c.replicas), cfg.AdmissionsPerCluster(c.replicas); calls != c.calls || admissions != c.ofOneCluster {
			t.Errorf("%q, %d replicas: %d calls and %d admissions, want %d and %d", c.more, c.replicas, calls, admissions, c.calls, c.ofOneCluster)
		}
	}
}
