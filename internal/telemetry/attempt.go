// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Attempted is webhook.Observer's.
func (m *Metrics) Attempted(ctx context.Context, a transport.Attempt) {
	if s := m.caller(a.Owner); s != nil {
		m.attempts.Add(ctx, 1, s.attempts[a.Kind].add...)
	}
}

// Refused is webhook.Observer's.
func (m *Metrics) Refused(ctx context.Context, owner any) {
	if s := m.caller(owner); s != nil {
		m.refused.Add(ctx, 1, s.plain.add...)
	}
}

// Disagreed is webhook.Observer's.
func (m *Metrics) Disagreed(ctx context.Context, owner any) {
	if s := m.caller(owner); s != nil {
		m.disagreed.Add(ctx, 1, s.plain.add...)
	}
}

// Misread is webhook.Observer's.
func (m *Metrics) Misread(ctx context.Context, owner any) {
	if s := m.caller(owner); s != nil {
		m.misread.Add(ctx, 1, s.plain.add...)
	}
}

// caller returns the sets of the webhook whose call it is, nil if it is nobody's.
func (m *Metrics) caller(owner any) *callSets {
	w, ok := owner.(*chain.Entry)
	if !ok {
		return nil
	}
	return m.sets.newest().caller(w)
}
