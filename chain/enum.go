// SPDX-License-Identifier: Apache-2.0

package chain

// String returns the policy as Kubernetes spells it.
func (p FailurePolicy) String() string {
	if p == Ignore {
		return "Ignore"
	}
	return "Fail"
}

// String returns the mode as a WebhookBinding spells it.
func (m Mode) String() string {
	switch m {
	case Warn:
		return "Warn"
	case Shadow:
		return "Shadow"
	}
	return "Enforce"
}

// String returns the stage as a WebhookBinding spells it.
func (s Stage) String() string {
	if s == StageTransactional {
		return "Transactional"
	}
	return "Validating"
}

// String returns the class as Kubernetes spells it.
func (s SideEffects) String() string {
	switch s {
	case SideEffectsNone:
		return "None"
	case SideEffectsNoneOnDryRun:
		return "NoneOnDryRun"
	case SideEffectsSome:
		return "Some"
	}
	return "Unknown"
}
