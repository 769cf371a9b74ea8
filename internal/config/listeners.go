// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/transport"
)

// TLS is the identity of the admission listener and whom it trusts. The files
// are read again when they change; while they do not fit together the last good
// ones stay.
type TLS struct {
	// CertFile is the serving certificate with its chain, in PEM. Required.
	// Danger: once it has expired no caller gets through.
	CertFile string `json:"certFile"`
	// KeyFile is its private key, in PEM. Required. Danger: who can read it can
	// pose as the dispatcher, and allow.
	KeyFile string `json:"keyFile"`
	// ClientCAFile are the authorities of client certificates, in PEM. Required
	// where clientAuth is Require. Danger: each of them can mint the name of every
	// cluster that has no caFile of its own.
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// ClientAuth is Require, or IfGiven where some clusters use tokens. Default:
	// Require. Danger: with IfGiven strangers get past the TLS handshake, and as
	// far as a 403.
	ClientAuth string `json:"clientAuth,omitempty"`
}

// The values of TLS.ClientAuth.
const (
	Require = "Require"
	IfGiven = "IfGiven"
)

func (t *TLS) validate(at *field.Path) field.ErrorList {
	errs := slices.Concat(
		file(at.Child("certFile"), t.CertFile, "the admission listener serves TLS only"),
		file(at.Child("keyFile"), t.KeyFile, "the admission listener serves TLS only"),
		oneOf(at.Child("clientAuth"), t.ClientAuth, Require, IfGiven),
	)
	if t.ClientAuth == Require || t.ClientCAFile != "" {
		errs = append(errs, file(at.Child("clientCAFile"), t.ClientCAFile,
			"without it no client certificate can be verified; where all clusters use tokens set clientAuth: IfGiven")...)
	}
	return errs
}

// Admin is the listener for probes and the status page.
type Admin struct {
	// Listen is host:port. Default: "127.0.0.1:8081". Danger: beyond loopback and
	// without tls everybody who reaches it reads the names of clusters, webhooks
	// and denied objects.
	Listen string `json:"listen,omitempty"`
	// TLS is the identity of the listener and who may see the status page.
	// Default: none, plain HTTP.
	TLS AdminTLS `json:"tls,omitzero"`
	// OpenMetrics serves /metrics to those without a client certificate, too, where
	// admin.tls.clientCAFile asks for one. Default: false. Danger: whoever reaches
	// the listener reads the names of clusters and webhooks, and how much they do.
	OpenMetrics bool `json:"openMetrics,omitempty"`
	// Profiling serves profiles of the process at /debug/pprof/, to those who may
	// see the status page. Default: false. Danger: making a profile takes a few
	// percent of CPU, a trace more; profiles tell what the process does, and its
	// command line.
	Profiling bool `json:"profiling,omitempty"`
}

// AdminTLS is the identity of the admin listener and whom it trusts. The files
// are followed as those of TLS are.
type AdminTLS struct {
	// CertFile is the serving certificate with its chain, in PEM. Default: none.
	// Danger: once it has expired probes that verify it fail.
	CertFile string `json:"certFile,omitempty"`
	// KeyFile is its private key, in PEM. Required with certFile.
	KeyFile string `json:"keyFile,omitempty"`
	// ClientCAFile are the authorities of those who may see more than the probes,
	// in PEM. Default: everybody may. Danger: without it TLS only hides the answers
	// on their way.
	ClientCAFile string `json:"clientCAFile,omitempty"`
}

// On reports whether the admin listener speaks TLS.
func (t AdminTLS) On() bool { return t.CertFile != "" }

func (t *AdminTLS) validate(at *field.Path) field.ErrorList {
	if *t == (AdminTLS{}) {
		return nil
	}
	errs := append(
		file(at.Child("certFile"), t.CertFile, "admin.tls needs a certificate to serve"),
		file(at.Child("keyFile"), t.KeyFile, "admin.tls needs the key of its certificate")...)
	if t.ClientCAFile != "" {
		errs = append(errs, file(at.Child("clientCAFile"), t.ClientCAFile, "")...)
	}
	return errs
}

// ClusterPlaceholder stands for the name of a Cluster in Registration.URL.
const ClusterPlaceholder = "{cluster}"

// Registration is how clusters reach this dispatcher.
type Registration struct {
	// URL is https://host:port, without a path. Required by the command
	// registration. {cluster} in the host stands for the name of the Cluster.
	URL string `json:"url,omitempty"`
	// CAFile are the authorities of the serving certificate, in PEM. Default: the
	// caller's trust roots. Danger: without it any authority that the control
	// plane's host trusts can stand in for the dispatcher.
	CAFile string `json:"caFile,omitempty"`
}

// Of returns where a cluster reaches the dispatcher, and the PEM authorities by which it
// verifies it; nil: the system's. The authorities are read anew each time. The error says
// what the file lacks.
func (r *Registration) Of(cluster string) (address string, authorities []byte, err error) {
	if r.URL == "" {
		return "", nil, errors.New("registration.url is not set in the configuration file: say where clusters reach the dispatcher")
	}
	if r.CAFile != "" {
		if authorities, err = os.ReadFile(r.CAFile); err != nil {
			return "", nil, fmt.Errorf("registration.caFile: %w", err)
		}
	}
	return strings.ReplaceAll(r.URL, ClusterPlaceholder, cluster), authorities, nil
}

func (r *Registration) validate(at *field.Path) field.ErrorList {
	if r.URL == "" {
		return nil
	}
	example := strings.ReplaceAll(r.URL, ClusterPlaceholder, "cluster")
	u, err := url.Parse(example)
	if err != nil || u.Scheme != "https" || u.Host == "" || example != "https://"+u.Host {
		return field.ErrorList{field.Invalid(at.Child("url"), r.URL, "must be https://host:port, with nothing after it")}
	}
	return nil
}

// validateListeners checks the addresses of both listeners.
func validateListeners(listen, adminListen string) field.ErrorList {
	admin := field.NewPath("admin", "listen")
	errs := append(address(field.NewPath("listen"), listen, 0), address(admin, adminListen, 0)...)
	if len(errs) == 0 && listen == adminListen && !strings.HasSuffix(listen, ":0") {
		errs = append(errs, field.Invalid(admin, adminListen, "must be another address than listen"))
	}
	return errs
}

// listening returns the addresses of listeners as far as the file names them by number.
func listening(listeners ...string) []netip.AddrPort {
	var own []netip.AddrPort
	for _, listen := range listeners {
		host, port, _ := net.SplitHostPort(listen)
		ip, ok := transport.ParseHost(host)
		if host == "" {
			ip, ok = netip.IPv6Unspecified(), true
		}
		if n, err := strconv.ParseUint(port, 10, 16); ok && err == nil && n > 0 {
			own = append(own, netip.AddrPortFrom(ip, uint16(n)))
		}
	}
	return own
}

// isLoopback reports whether a listener can be reached from this host alone.
func isLoopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
