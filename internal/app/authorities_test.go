// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// A reload from one authority of clients to thousands loses no call, neither on
// connections that are open nor on new ones: with equal names, which crypto/tls
// would try one after the other, and with names that do not fit into a TLS
// handshake together.
func TestReloadToManyAuthorities(t *testing.T) {
	const authorities = 3000
	for name, call := range map[string]func(i int) string{
		"equal names": func(int) string { return "test" },
		"distinct names": func(i int) string {
			return fmt.Sprintf("an authority of clients of the cluster with the number %06d", i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			all := [][]byte{w.authority.PEM}
			for i := range authorities - 1 {
				other, err := pki.NewAuthority(call(i))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, other.PEM)
			}
			slices.Reverse(all)
			address := w.start("lameDuck: 0s\n").awaitReady()
			var stop atomic.Bool
			var calls atomic.Int64
			var callers sync.WaitGroup
			for _, kept := range []bool{true, false} {
				callers.Go(func() {
					c := w.clientOf(address)
					for !stop.Load() {
						if got, err := ask(c); err != nil || !got.allowed {
							t.Errorf("connections kept: %t: %+v, %v", kept, got, err)
							return
						}
						calls.Add(1)
						if !kept {
							c.CloseIdleConnections()
						}
					}
				})
			}
			more := func() {
				before := calls.Load()
				eventually(t, "calls are made", func() bool { return calls.Load() > before+50 || t.Failed() })
			}
			more()
			w.write("ca.crt", slices.Concat(all...))
			eventually(t, "the authorities are loaded", func() bool { return w.loggedTimes("certificates loaded") == 1 || t.Failed() })
			more()
			stop.Store(true)
			callers.Wait()
		})
	}
}

// A Cluster that pins authorities is known by these, and by no other, whether the
// process has them or not.
func TestPinnedAuthority(t *testing.T) {
	w := newWorld(t)
	address := w.start("lameDuck: 0s\n").awaitReady()
	allowed := func() bool {
		c := w.clientOf(address)
		defer c.CloseIdleConnections()
		got, err := ask(c)
		return err == nil && got.allowed
	}
	if !allowed() {
		t.Fatal("the caller is not let in")
	}
	own, err := pki.NewAuthority("test") // of the same name as the process's
	if err != nil {
		t.Fatal(err)
	}
	pair, err := own.Issue(pki.Subject{CommonName: "east"})
	if err != nil {
		t.Fatal(err)
	}
	w.write("registry/own.pem", own.PEM)
	w.write("registry/cluster.yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east}\n"+
		"spec: {authentication: {certificate: {commonNames: [east], caFile: own.pem}}}\n"))
	eventually(t, "the caller with a certificate of the process's authority is refused", func() bool { return !allowed() })
	w.write("east.crt", pair.Certificate)
	w.write("east.key", pair.Key)
	eventually(t, "the caller with one of the cluster's own is let in", allowed)
}

// The admin listener sends the names of its authorities: more than a handshake
// holds are refused, and the last good ones stay.
func TestAdminAuthoritiesFit(t *testing.T) {
	w := newWorld(t)
	w.issue("admin", pki.Subject{CommonName: "admin"})
	w.write("operators.crt", w.authority.PEM)
	w.startFrom(strings.Replace(fileConfig, `admin: {listen: "127.0.0.1:0"}`,
		`admin: {listen: "127.0.0.1:0", tls: {certFile: admin.crt, keyFile: admin.key, clientCAFile: operators.crt}}`, 1) + "lameDuck: 0s\n").awaitReady()
	var all []byte
	for i := range 1000 {
		other, err := pki.NewAuthority(fmt.Sprintf("an authority of operators of a long name with the number %06d", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, other.PEM...)
	}
	w.write("operators.crt", all)
	eventually(t, "the authorities are refused", func() bool { return w.logged("do not fit into a TLS handshake") })
}
