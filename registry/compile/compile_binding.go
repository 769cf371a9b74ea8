// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// endpointsKey is a list of endpoints by content; "" is none.
type endpointsKey string

// compileBindings compiles every binding that is valid on its own.
func (c *compiler) compileBindings() {
	for i := range c.objects.Bindings {
		m := &c.objects.Bindings[i]
		before := len(c.problems)
		c.problem(m.Problems(validateBinding(&m.WebhookBindingObject, c.Addresses))...)
		b := &binding{Binding: m, says: c.compileDispatch(m)}
		if len(c.problems) > before {
			continue
		}
		selector, err := clusterSelector(m.Spec.ClusterSelector)
		if err != nil {
			c.problem(m.Problem(field.NewPath("spec", "clusterSelector"), "", err.Error()))
			continue
		}
		b.clusters = selector
		c.bindings = append(c.bindings, b)
	}
}

// compileDispatch reads what the binding says, and the files that it names.
func (c *compiler) compileDispatch(m *manifest.Binding) partialDispatch {
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

func modeOf(s string) *chain.Mode {
	switch s {
	case "":
		return nil
	case "Warn":
		return new(chain.Warn)
	case "Shadow":
		return new(chain.Shadow)
	}
	return new(chain.Enforce)
}

func stageOf(s string) *chain.Stage {
	switch s {
	case "":
		return nil
	case "Transactional":
		return new(chain.StageTransactional)
	}
	return new(chain.StageValidating)
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

func hedgeOf(s string) *chain.Hedge {
	switch s {
	case "":
		return nil
	case "On":
		return new(chain.HedgeOn)
	case "Off":
		return new(chain.HedgeOff)
	}
	return new(chain.HedgeAuto)
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

func probeOf(s string) *chain.Probe {
	switch s {
	case "":
		return nil
	case "Skip":
		return new(chain.ProbeSkip)
	case "Review":
		return new(chain.ProbeReview)
	}
	return new(chain.ProbeConnect)
}

func joinOf(s string) *chain.Join {
	switch s {
	case "":
		return nil
	case "WhenReady":
		return new(chain.JoinWhenReady)
	}
	return new(chain.JoinEnforce)
}

func breakerOf(b *manifest.Breaker) *transport.BreakerSpec {
	if b == nil {
		return nil
	}
	spec := &transport.BreakerSpec{Off: b.Enabled != nil && !*b.Enabled}
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

func (c *compiler) compileEndpoints(m *manifest.Binding) *endpointsKey {
	if len(m.Spec.Endpoints) == 0 {
		return nil
	}
	var key strings.Builder
	specs := make([]transport.EndpointSpec, len(m.Spec.Endpoints))
	for i, e := range m.Spec.Endpoints {
		at := field.NewPath("spec", "endpoints").Index(i).Child("caFile")
		specs[i] = transport.EndpointSpec{Address: e.Address, ServerName: e.ServerName, CABundle: c.readCA(m.Origin, e.CAFile, at)}
		for _, part := range []string{e.Address, e.ServerName, string(specs[i].CABundle)} {
			key.WriteString(part)
			key.WriteByte(0)
		}
	}
	k := endpointsKey(key.String())
	c.endpoints[k] = specs
	return &k
}
