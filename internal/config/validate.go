// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/match"
)

// maxDeadline is the longest timeout that kube-apiserver gives a webhook.
const maxDeadline = 30 * time.Second

// validate returns everything that is wrong, with defaults filled in.
func (c *Config) validate() field.ErrorList {
	var errs field.ErrorList
	add := func(more ...*field.Error) {
		for _, e := range more {
			if e != nil {
				errs = append(errs, e)
			}
		}
	}
	if c.APIVersion != APIVersion {
		add(field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{APIVersion}))
	}
	if c.Kind != Kind {
		add(field.NotSupported(field.NewPath("kind"), c.Kind, []string{Kind}))
	}
	add(address(field.NewPath("listen"), c.Listen))
	add(address(field.NewPath("admin", "listen"), c.Admin.Listen))
	errs = append(errs, c.TLS.validate(field.NewPath("tls"))...)
	errs = append(errs, c.validateSources()...)
	for i, cidr := range c.AllowedNetworks {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			add(field.Invalid(field.NewPath("allowedNetworks").Index(i), cidr, "must be a CIDR such as 127.0.0.0/8"))
		}
	}
	errs = append(errs, match.ValidateRequestRules(c.Bypass.Rules, field.NewPath("bypass", "rules"), false)...)
	errs = append(errs, match.ValidateRequestRules(c.FailOpen, field.NewPath("failOpen"), true)...)
	errs = append(errs, c.validateNumbers()...)
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) {
		add(field.NotSupported(field.NewPath("log", "level"), c.Log.Level, []string{"debug", "info", "warn", "error"}))
	}
	if c.DNS.Server != "" {
		add(address(field.NewPath("dns", "server"), c.DNS.Server))
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func (t *TLS) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, file := range map[string]string{"certFile": t.CertFile, "keyFile": t.KeyFile} {
		if file == "" {
			errs = append(errs, field.Required(at.Child(name), "the admission listener serves TLS only"))
		}
	}
	switch t.ClientAuth {
	case Require:
		if t.ClientCAFile == "" {
			errs = append(errs, field.Required(at.Child("clientCAFile"), "without it no client certificate can be verified; clientAuth: IfGiven is for clusters that use tokens"))
		}
	case IfGiven:
	default:
		errs = append(errs, field.NotSupported(at.Child("clientAuth"), t.ClientAuth, []string{Require, IfGiven}))
	}
	return errs
}

func (c *Config) validateSources() field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("sources")
	if len(c.Sources) == 0 {
		errs = append(errs, field.Required(at, "name at least one directory"))
	}
	for i, s := range c.Sources {
		if s.Directory == "" {
			errs = append(errs, field.Required(at.Index(i).Child("directory"), ""))
		}
	}
	return errs
}

// validateNumbers checks every duration and size: none negative, and those that
// depend on each other.
func (c *Config) validateNumbers() field.ErrorList {
	var errs field.ErrorList
	for name, d := range map[string]time.Duration{
		"reloadInterval":   c.ReloadInterval.Duration,
		"deadline.default": c.Deadline.Default.Duration,
		"deadline.max":     c.Deadline.Max.Duration,
		"timeouts.headers": c.Timeouts.Headers.Duration,
		"timeouts.body":    c.Timeouts.Body.Duration,
		"timeouts.idle":    c.Timeouts.Idle.Duration,
		"timeouts.connect": c.Timeouts.Connect.Duration,
		"dns.interval":     c.DNS.Interval.Duration,
		"dns.timeout":      c.DNS.Timeout.Duration,
	} {
		if d <= 0 {
			errs = append(errs, field.Invalid(field.NewPath(name), d.String(), "must be above zero"))
		}
	}
	for name, d := range map[string]time.Duration{"lameDuck": c.LameDuck.Duration, "deadline.grace": c.Deadline.Grace.Duration} {
		if d < 0 {
			errs = append(errs, field.Invalid(field.NewPath(name), d.String(), "must not be negative"))
		}
	}
	if c.Deadline.Max.Duration > maxDeadline {
		errs = append(errs, field.Invalid(field.NewPath("deadline.max"), c.Deadline.Max.Duration.String(), fmt.Sprintf("must be at most %v, the longest that kube-apiserver waits", maxDeadline)))
	}
	if c.Deadline.Default.Duration > c.Deadline.Max.Duration {
		errs = append(errs, field.Invalid(field.NewPath("deadline.default"), c.Deadline.Default.Duration.String(), "must not exceed deadline.max"))
	}
	for name, n := range map[string]int{
		"limits.requestBytes":  c.Limits.RequestBytes,
		"limits.responseBytes": c.Limits.ResponseBytes,
		"limits.connections":   c.Limits.Connections,
		"limits.shadowCalls":   c.Limits.ShadowCalls,
	} {
		if n < 0 {
			errs = append(errs, field.Invalid(field.NewPath(name), n, "must not be negative"))
		}
	}
	return errs
}

func address(at *field.Path, value string) *field.Error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return field.Invalid(at, value, "must be host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return field.Invalid(at, value, "the port must be a number from 0 to 65535")
	}
	return nil
}
