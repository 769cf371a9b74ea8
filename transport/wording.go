// SPDX-License-Identifier: Apache-2.0

package transport

import "github.com/admission-dispatcher/dispatcher/breaker"

// wording is in which of the wordings of its Message a call is sent, and what it has
// found out about the first. A denial in the first, although perhaps a misreading,
// stands unless the plain one brings a verdict.
type wording struct {
	plain   bool   // the plain one is sent from now on
	doubted error  // of an attempt in the first, as long as it is not known whether that was at fault
	denial  result // in the first; without an error: there was none
}

// doubts reports whether an end is not yet to be taken for an answer: it is
// perhaps a misreading, or an allow in the wording in which a denial was perhaps one.
func (w *wording) doubts(end *result) bool {
	return end.doubtful || w.denial.err != nil && !end.plain && end.allows()
}

// learn returns what an end says of the first wording, and why that is given up. A
// misreading is its fault if the plain one brings a verdict, or nothing in time; if
// that fails too, it is not.
func (w *wording) learn(end *result) (l Lesson, doubted error) {
	switch {
	case end.doubtful && !w.plain:
		w.doubted = end.err
	case end.plain && w.doubted != nil && (end.err == nil || end.kind == breaker.TimedOut):
		return Misread, w.giveUp()
	case end.plain && w.doubted != nil && end.isAnswer():
		return Blameless, nil
	case end.err == nil && !end.plain:
		return Read, nil
	}
	return 0, nil
}

// giveUp returns why the first wording is given up.
func (w *wording) giveUp() error {
	err := w.doubted
	w.doubted = nil
	return err
}

// final returns what the call ends with if it ends with end: the denial that was perhaps
// a misreading where the plain wording has brought no verdict.
func (w *wording) final(end result) result {
	if w.denial.err != nil && (!end.verdict() || end.allows() && !end.plain) {
		return w.denial
	}
	return end
}
