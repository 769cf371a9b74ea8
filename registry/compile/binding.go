// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// binding is a WebhookBinding, compiled.
type binding struct {
	*manifest.Binding
	clusters labels.Selector
	says     partialDispatch
	selected int // clusters
}

// dispatch is how one webhook is dispatched in one cluster. It is comparable:
// equal dispatches of a webhook share everything that is compiled.
type dispatch struct {
	mode      chain.Mode
	timeout   time.Duration // 0: the webhook's own
	endpoints endpointsKey
	client    keyPair
	token     string
	stage     chain.Stage
	order     int32
	compat    codec.Compatibility
	retry     bool // failed calls are repeated, then Fail
	hedge     chain.Hedge
	denyWins  bool
	breaker   transport.BreakerSpec
	probe     chain.Probe
	join      chain.Join
	wire      webhook.Wire
}

// keyPair is a client certificate and its key in PEM; zero is none.
type keyPair struct{ certificate, key string }

// partialDispatch is what one binding says; nil: nothing.
type partialDispatch struct {
	mode      *chain.Mode
	timeout   *time.Duration
	endpoints *endpointsKey
	client    *keyPair
	token     *string
	stage     *chain.Stage
	order     *int32
	compat    *codec.Compatibility
	retry     *bool
	hedge     *chain.Hedge
	denyWins  *bool
	breaker   *transport.BreakerSpec
	probe     *chain.Probe
	join      *chain.Join

	encoding    *webhook.Encoding
	compression *webhook.Compression
}

// binds reports whether one of the binding's globs selects the webhook.
func (b *binding) binds(configuration, webhook string) bool {
	for _, glob := range b.Spec.Webhooks {
		if globMatches(glob, configuration, webhook) {
			return true
		}
	}
	return false
}

func globMatches(glob, configuration, webhook string) bool {
	ok, err := path.Match(glob, configuration+"/"+webhook)
	return ok && err == nil
}

// clusterSelector compiles a valid selector; none selects all.
func clusterSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// conflict is one field that two bindings set differently (E16).
type conflict struct {
	first, second *binding
	field         string
}

// merge is bindings put together for one webhook and cluster.
type merge struct {
	dispatch  dispatch
	conflicts []conflict
	setBy     map[string]*binding
}

// mergeBindings puts together what the bindings say, where encoding is what holds
// if none does. Their order decides only which of two that disagree is named first.
func mergeBindings(bindings []*binding, encoding webhook.Encoding) merge {
	m := merge{setBy: map[string]*binding{}}
	m.dispatch.wire.Encoding = encoding
	for _, b := range bindings {
		setOnce(&m, b, "mode", &m.dispatch.mode, b.says.mode)
		setOnce(&m, b, "timeout", &m.dispatch.timeout, b.says.timeout)
		setOnce(&m, b, "endpoints", &m.dispatch.endpoints, b.says.endpoints)
		setOnce(&m, b, "clientCertificate", &m.dispatch.client, b.says.client)
		setOnce(&m, b, "bearerTokenFile", &m.dispatch.token, b.says.token)
		setOnce(&m, b, "stage", &m.dispatch.stage, b.says.stage)
		setOnce(&m, b, "order", &m.dispatch.order, b.says.order)
		setOnce(&m, b, "compatibility", &m.dispatch.compat, b.says.compat)
		setOnce(&m, b, "failurePolicy", &m.dispatch.retry, b.says.retry)
		setOnce(&m, b, "hedge", &m.dispatch.hedge, b.says.hedge)
		setOnce(&m, b, "denyWins", &m.dispatch.denyWins, b.says.denyWins)
		setOnce(&m, b, "breaker", &m.dispatch.breaker, b.says.breaker)
		setOnce(&m, b, "probe", &m.dispatch.probe, b.says.probe)
		setOnce(&m, b, "join", &m.dispatch.join, b.says.join)
		setOnce(&m, b, "encoding", &m.dispatch.wire.Encoding, b.says.encoding)
		setOnce(&m, b, "compression", &m.dispatch.wire.Compression, b.says.compression)
	}
	return m
}

func setOnce[T comparable](m *merge, b *binding, name string, into, value *T) {
	if value == nil {
		return
	}
	first, set := m.setBy[name]
	if !set {
		*into, m.setBy[name] = *value, b
		return
	}
	if *into != *value {
		m.conflicts = append(m.conflicts, conflict{first, b, name})
	}
}
