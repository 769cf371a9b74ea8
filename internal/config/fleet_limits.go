// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/fleet"
)

// Fleet is the replicas that share the clusters' calls. What is limited under limits is
// limited in each replica; what is limited here is limited in all together, and each takes
// its part of it. Both hold.
type Fleet struct {
	// Replicas is how many there are, at most 1000. Default: unknown, which counts as 1.
	// Danger: with too low a number a webhook that is down gets more attempts, with too
	// high a one each replica uses less than its part.
	Replicas int `json:"replicas,omitempty"`
	// File names a file that says how many there are; it goes before replicas.
	// dispatcher-kube sync writes it with --service. Default: none. Danger: while it
	// cannot be read, the last number that was read counts.
	File string `json:"file,omitempty"`
	// CallsPerEndpoint bounds the calls of all replicas that are under way to one address
	// of a webhook. A replica takes an even part, rounded up, and at most
	// limits.callsPerEndpoint. Default: only the latter holds. Danger: replicas are
	// called unevenly, so the busiest one sheds while others have calls left.
	CallsPerEndpoint int `json:"callsPerEndpoint,omitempty"`
	// AdmissionsPerCluster bounds the admissions of one cluster, in all replicas, for which
	// webhooks are being called. A replica takes two even parts, at least 16, and at most
	// limits.admissionsPerCluster. Default: only the latter holds. Danger: as for
	// callsPerEndpoint.
	AdmissionsPerCluster int `json:"admissionsPerCluster,omitempty"`
}

// A replica's part of what one cluster may have in all of them: connections are spread at
// random, so that an even part is too little for the busiest, and one that is very small
// says more about chance than about the cluster.
const (
	admissionsSlack = 2
	admissionsLeast = 16
)

func (f *Fleet) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if f.Replicas > fleet.MaxReplicas {
		errs = append(errs, field.Invalid(at.Child("replicas"), f.Replicas, "must be at most 1000"))
	}
	if f.File != "" {
		errs = append(errs, file(at.Child("file"), f.File, "")...)
	}
	if f.Replicas == 0 && f.File == "" && f.CallsPerEndpoint+f.AdmissionsPerCluster > 0 {
		errs = append(errs, field.Required(at.Child("replicas"), "set replicas or file: without them nobody knows of how many replicas the limits are"))
	}
	return slices.Concat(
		errs,
		notNegative(at.Child("replicas"), f.Replicas),
		notNegative(at.Child("callsPerEndpoint"), f.CallsPerEndpoint),
		notNegative(at.Child("admissionsPerCluster"), f.AdmissionsPerCluster),
	)
}

// CallsPerEndpoint returns how many calls may be under way to one address of a webhook in
// one of so many replicas.
func (c *Config) CallsPerEndpoint(replicas int) int {
	own := c.Limits.CallsPerEndpoint
	if c.Fleet.CallsPerEndpoint == 0 {
		return own
	}
	return min(own, fleet.Share(c.Fleet.CallsPerEndpoint, replicas, 1, 1))
}

// AdmissionsPerCluster returns for how many admissions of one cluster webhooks may be
// called at a time in one of so many replicas.
func (c *Config) AdmissionsPerCluster(replicas int) int {
	own := c.Limits.AdmissionsPerCluster
	if c.Fleet.AdmissionsPerCluster == 0 {
		return own
	}
	return min(own, fleet.Share(c.Fleet.AdmissionsPerCluster, replicas, admissionsSlack, admissionsLeast))
}
