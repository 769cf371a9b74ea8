// SPDX-License-Identifier: Apache-2.0

// Package history decides for every recorded admission which answers were
// allowed. It is a pure model of the dispatcher's semantics, written from
// docs/contract.md alone and sharing no code with what it judges: plain data in,
// findings out, no I/O and no clock.
//
// The World says what was configured and what was broken, the Calls what the
// caller saw, the Attempts what the webhooks saw. All times are offsets from the
// beginning of the run, on one clock. Where the record leaves room for doubt (an
// answer at the very edge of a deadline) the checker says nothing.
//
// Not modelled: reinvocation (the mutating webhooks of a World have
// reinvocationPolicy Never) and the Transactional stage.
package history
