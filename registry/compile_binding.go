// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// endpointsKey is a list of endpoints by content; "" is none.
type endpointsKey string

// compileBindings compiles every binding that is valid on its own.
func (c *compiler) compileBindings() {
	for i := range c.objects.bindings {
		m := &c.objects.bindings[i]
		before := len(c.problems)
		c.problem(m.problems(validateBinding(&m.WebhookBindingObject, c.settings.Addresses))...)
		b := &binding{bindingManifest: m, says: c.compileDispatch(m)}
		if len(c.problems) > before {
			continue
		}
		selector, err := clusterSelector(m.Spec.ClusterSelector)
		if err != nil {
			c.problem(m.problem(field.NewPath("spec", "clusterSelector"), "", err.Error()))
			continue
		}
		b.clusters = selector
		c.bindings = append(c.bindings, b)
	}
}

// compileDispatch reads what the binding says, and the files that it names.
func (c *compiler) compileDispatch(m *bindingManifest) partialDispatch {
	spec := &m.Spec
	says := partialDispatch{
		mode:      modeOf(spec.Mode),
		stage:     stageOf(spec.Stage),
		compat:    compatibilityOf(spec.Compatibility),
		order:     spec.Order,
		endpoints: c.compileEndpoints(m),
		client:    c.compileClient(m),
		token:     c.compileToken(m),
		retry:     retryOf(spec.FailurePolicy),
		hedge:     hedgeOf(spec.Hedge),
		denyWins:  spec.DenyWins,
		breaker:   breakerOf(spec.Breaker),
		probe:     probeOf(spec.Probe),
		join:      joinOf(spec.Join),

		encoding:    encodingOf(spec.Encoding),
		compression: compressionOf(spec.Compression),
	}
	if spec.Timeout != nil {
		says.timeout = &spec.Timeout.Duration
	}
	return says
}

func modeOf(s string) *Mode {
	switch s {
	case "":
		return nil
	case "Warn":
		return new(Warn)
	case "Shadow":
		return new(Shadow)
	}
	return new(Enforce)
}

func stageOf(s string) *Stage {
	switch s {
	case "":
		return nil
	case "Transactional":
		return new(StageTransactional)
	}
	return new(StageValidating)
}

func compatibilityOf(s string) *codec.Compatibility {
	switch s {
	case "":
		return nil
	case "APIServer":
		return new(codec.APIServer)
	}
	return new(codec.Strict)
}

func retryOf(s string) *bool {
	if s == "" {
		return nil
	}
	return new(true)
}

func hedgeOf(s string) *Hedge {
	switch s {
	case "":
		return nil
	case "On":
		return new(HedgeOn)
	case "Off":
		return new(HedgeOff)
	}
	return new(HedgeAuto)
}

func encodingOf(s string) *webhook.Encoding {
	if s == "" {
		return nil
	}
	return new(webhook.ParseEncoding(s))
}

func compressionOf(s string) *webhook.Compression {
	switch s {
	case "":
		return nil
	case "Auto":
		return new(webhook.CompressAuto)
	case "Gzip":
		return new(webhook.CompressGzip)
	case "Zstd":
		return new(webhook.CompressZstd)
	}
	return new(webhook.Uncompressed)
}

func probeOf(s string) *Probe {
	switch s {
	case "":
		return nil
	case "Skip":
		return new(ProbeSkip)
	case "Review":
		return new(ProbeReview)
	}
	return new(ProbeConnect)
}

func joinOf(s string) *Join {
	switch s {
	case "":
		return nil
	case "WhenReady":
		return new(JoinWhenReady)
	}
	return new(JoinEnforce)
}

func breakerOf(b *Breaker) *webhook.BreakerSpec {
	if b == nil {
		return nil
	}
	spec := &webhook.BreakerSpec{Off: b.Enabled != nil && !*b.Enabled}
	if b.FailurePercent != nil {
		spec.FailureRatio = float64(*b.FailurePercent) / 100
	}
	if b.MinRequests != nil {
		spec.MinRequests = int(*b.MinRequests)
	}
	if b.OpenTime != nil {
		spec.OpenTime = b.OpenTime.Duration
	}
	return spec
}

func (c *compiler) compileEndpoints(m *bindingManifest) *endpointsKey {
	if len(m.Spec.Endpoints) == 0 {
		return nil
	}
	var key strings.Builder
	specs := make([]webhook.EndpointSpec, len(m.Spec.Endpoints))
	for i, e := range m.Spec.Endpoints {
		at := field.NewPath("spec", "endpoints").Index(i).Child("caFile")
		specs[i] = webhook.EndpointSpec{Address: e.Address, ServerName: e.ServerName, CABundle: c.readCA(m.origin, e.CAFile, at)}
		for _, part := range []string{e.Address, e.ServerName, string(specs[i].CABundle)} {
			key.WriteString(part)
			key.WriteByte(0)
		}
	}
	k := endpointsKey(key.String())
	c.endpoints[k] = specs
	return &k
}
