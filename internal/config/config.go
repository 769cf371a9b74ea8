// SPDX-License-Identifier: Apache-2.0

// Package config reads the process's configuration file.
package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/match"
)

// The version and kind of the configuration file.
const (
	APIVersion = "dispatcher.dev/v1alpha1"
	Kind       = "DispatcherConfiguration"
)

// Config is a DispatcherConfiguration: what the process needs to know before it
// reads the registry. Durations are texts such as "2s" or "250ms"; relative
// paths are relative to the file.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Listen is host:port of the admission listener. Default: ":8443". Danger:
	// whoever reaches it and presents a cluster's credential is that cluster.
	Listen string `json:"listen,omitempty"`
	// TLS is the identity of the admission listener and whom it trusts. Required.
	TLS TLS `json:"tls"`
	// Admin is the listener for probes. It must not be reachable by strangers.
	Admin Admin `json:"admin,omitzero"`

	// Sources are where the registry's objects come from. Required.
	Sources []Source `json:"sources"`
	// ReloadInterval is the time between two looks at sources and certificates.
	// Default: 2s.
	ReloadInterval metav1.Duration `json:"reloadInterval,omitzero"`
	// AllowEmpty lets an empty source replace one with objects. Default: false.
	// Danger: an empty directory, such as a volume that is not mounted yet, then
	// switches every policy off.
	AllowEmpty bool `json:"allowEmpty,omitempty"`
	// AllowedNetworks are CIDRs of loopback, link-local or metadata addresses
	// that webhooks may be dialled at all the same. Default: none. Danger: a
	// configuration can then reach what only this host can reach.
	AllowedNetworks []string `json:"allowedNetworks,omitempty"`

	// Bypass names requests that pass without any webhook being called.
	Bypass Bypass `json:"bypass,omitzero"`
	// FailOpen are rules for requests whose webhooks are called and whose denials
	// stand, but which no failing call blocks. Default: none. Danger: a policy
	// whose webhook is down does not hold for them.
	FailOpen []match.RequestRule `json:"failOpen,omitempty"`

	// Limits bound what one caller or webhook can make the process hold.
	Limits Limits `json:"limits,omitzero"`
	// Deadline bounds the time of one admission.
	Deadline Deadline `json:"deadline,omitzero"`
	// Timeouts bound the steps of a connection.
	Timeouts Timeouts `json:"timeouts,omitzero"`
	// LameDuck is how long the process goes on serving, closing each connection
	// after its answer, when it has been told to stop. Default: 10s. Danger: a
	// caller keeps idle connections for 90s and loses a call on each that is
	// closed as a request arrives; 95s loses nothing.
	LameDuck *metav1.Duration `json:"lameDuck,omitempty"`
	// DNS is how names of webhooks are resolved.
	DNS DNS `json:"dns,omitzero"`
	// Log is what is written to standard error.
	Log Log `json:"log,omitzero"`
}

// TLS is the identity of the admission listener and whom it trusts. The files
// are read again when they change; if they are not whole the last good stay.
type TLS struct {
	// CertFile is the serving certificate with its chain, in PEM. Required.
	CertFile string `json:"certFile"`
	// KeyFile is its private key, in PEM. Required.
	KeyFile string `json:"keyFile"`
	// ClientCAFile are the authorities of client certificates, in PEM. Required
	// unless clientAuth is IfGiven and no Cluster has certificate names. Danger:
	// each of them can mint the name of every cluster that has no caFile of its own.
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// ClientAuth is Require, or IfGiven where some clusters use tokens. Default:
	// Require.
	ClientAuth string `json:"clientAuth,omitempty"`
}

// Admin is the listener for probes.
type Admin struct {
	// Listen is host:port. Default: "127.0.0.1:8081". Danger: there is no
	// authentication; beyond loopback, keep strangers out by other means.
	Listen string `json:"listen,omitempty"`
}

// Source is one place where objects come from.
type Source struct {
	// Directory holds YAML and JSON manifests. Required.
	Directory string `json:"directory"`
}

// Bypass names requests that pass without any webhook being called.
type Bypass struct {
	// Defaults adds the built-in rules: system namespaces, leases, node
	// heartbeats. Default: true. Danger: without them a webhook that fails closed
	// can keep a cluster from healing.
	Defaults *bool `json:"defaults,omitempty"`
	// DispatcherNamespace is the namespace that the dispatcher runs in, if it
	// runs in a cluster that it serves. Default: none. Danger: without it the
	// dispatcher's own pods can wait for the dispatcher.
	DispatcherNamespace string `json:"dispatcherNamespace,omitempty"`
	// Rules are further rules. Default: none. Danger: what they select is checked
	// by nobody.
	Rules []match.RequestRule `json:"rules,omitempty"`
}

// Limits bound what one caller or webhook can make the process hold.
type Limits struct {
	// RequestBytes bounds a request's body, also after decompression, in bytes.
	// Default: 8388608 (8 MiB), what an update of the largest object takes.
	RequestBytes int `json:"requestBytes,omitempty"`
	// ResponseBytes bounds a webhook's answer, in bytes. Default: 4194304 (4 MiB).
	ResponseBytes int `json:"responseBytes,omitempty"`
	// Connections bounds open connections of callers. Default: 4096. Danger:
	// beyond it new connections are closed at once.
	Connections int `json:"connections,omitempty"`
	// ShadowCalls bounds calls of Shadow webhooks under way. Default: 256. Beyond
	// it they are dropped, visibly.
	ShadowCalls int `json:"shadowCalls,omitempty"`
}

// Deadline bounds the time of one admission.
type Deadline struct {
	// Default is for a caller that sends no ?timeout=. Default: 10s.
	Default metav1.Duration `json:"default,omitzero"`
	// Max is the longest that an admission may take. Default: 30s, and at most that.
	Max metav1.Duration `json:"max,omitzero"`
	// Grace is how long other webhooks may still answer after the first denial.
	// Default: 100ms. 0s answers at once, with that denial alone.
	Grace *metav1.Duration `json:"grace,omitempty"`
}

// Timeouts bound the steps of a connection.
type Timeouts struct {
	// Headers bounds the TLS handshake and the headers of a request. Default: 5s.
	Headers metav1.Duration `json:"headers,omitzero"`
	// Body bounds the body of a request. Default: 5s.
	Body metav1.Duration `json:"body,omitzero"`
	// Idle is how long a caller's connection may be idle. Default: 120s. Danger:
	// at or below the 90s of kube-apiserver, calls are lost on connections that
	// are closed as a request arrives.
	Idle metav1.Duration `json:"idle,omitzero"`
	// Connect bounds TCP connect and TLS handshake towards a webhook. Default: 1s.
	Connect metav1.Duration `json:"connect,omitzero"`
}

// DNS is how names of webhooks are resolved: in the background, never while a
// request waits.
type DNS struct {
	// Server is host:port of the DNS server. Default: the system's.
	Server string `json:"server,omitempty"`
	// Interval is the time between two look-ups of a name. Default: 10s.
	Interval metav1.Duration `json:"interval,omitzero"`
	// Timeout bounds one look-up. Default: 5s.
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// Log is what is written to standard error, one JSON object per line.
type Log struct {
	// Level is debug, info, warn or error. Default: info; debug adds a line for
	// each admission that was allowed.
	Level string `json:"level,omitempty"`
}
