{{- /*
An object as it is written: dict "name" (of the template that makes it) "ctx" $ "values" (with merge and patch), and what
else the template takes.
*/ -}}
{{- define "tapedeck.object" -}}
{{- include "tapedeck.refusals" .ctx -}}
{{- $doc := include .name . | fromYaml -}}
{{- with $doc.Error -}}{{- fail (printf "%s is not YAML: %s" $.name .) -}}{{- end -}}
{{- $doc = mergeOverwrite $doc (deepCopy (.values.merge | default dict)) -}}
{{- range $op := .values.patch | default list -}}
  {{- $keys := list -}}
  {{- range splitList "/" (trimPrefix "/" $op.path) -}}
    {{- $keys = append $keys (. | replace "~1" "/" | replace "~0" "~") -}}
  {{- end -}}
  {{- $doc = get (include "tapedeck.patched" (dict "at" $doc "keys" $keys "op" $op) | fromJson) "value" -}}
{{- end -}}
{{- include "tapedeck.refusedObject" (dict "ctx" .ctx "component" .component "doc" $doc) -}}
{{- toYaml $doc -}}
{{- end -}}

{{- /*
One operation of a JSON patch (RFC 6902: add, remove, replace, test) on a map or list: dict "at" (it) "keys" (the rest of
the path) "op" (the operation). Gives { value: … } as JSON.
*/ -}}
{{- define "tapedeck.patched" -}}
{{- $at := .at -}}
{{- $op := .op -}}
{{- $key := first .keys -}}
{{- $deeper := rest .keys -}}
{{- $what := printf "patch { op: %s, path: %s }" $op.op $op.path -}}
{{- if kindIs "map" $at -}}
  {{- $isNew := and (eq $op.op "add") (empty $deeper) -}}
  {{- if not (or (hasKey $at $key) $isNew) -}}{{- fail (printf "%s: there is no %q" $what $key) -}}{{- end -}}
  {{- if $deeper -}}
    {{- $inner := include "tapedeck.patched" (dict "at" (get $at $key) "keys" $deeper "op" $op) | fromJson -}}
    {{- $_ := set $at $key $inner.value -}}
  {{- else if eq $op.op "remove" -}}
    {{- $_ := unset $at $key -}}
  {{- else if eq $op.op "test" -}}
    {{- include "tapedeck.assertEqual" (dict "found" (get $at $key) "op" $op "what" $what) -}}
  {{- else -}}
    {{- $_ := set $at $key $op.value -}}
  {{- end -}}
{{- else if kindIs "slice" $at -}}
  {{- $isNew := and (eq $op.op "add") (empty $deeper) -}}
  {{- $end := len $at -}}
  {{- $index := ternary $end (atoi $key) (eq $key "-") -}}
  {{- $isIndex := or (and $isNew (eq $key "-")) (regexMatch "^(0|[1-9][0-9]*)$" $key) -}}
  {{- if or (not $isIndex) (gt $index (ternary $end (sub $end 1 | int) $isNew)) -}}
    {{- fail (printf "%s: there is no item %q, of %d" $what $key $end) -}}
  {{- end -}}
  {{- $items := list -}}
  {{- range $i, $item := $at -}}
    {{- if ne $i $index -}}
      {{- $items = append $items $item -}}
    {{- else if $deeper -}}
      {{- $inner := include "tapedeck.patched" (dict "at" $item "keys" $deeper "op" $op) | fromJson -}}
      {{- $items = append $items $inner.value -}}
    {{- else if eq $op.op "add" -}}
      {{- $items = append (append $items $op.value) $item -}}
    {{- else if eq $op.op "replace" -}}
      {{- $items = append $items $op.value -}}
    {{- else if eq $op.op "test" -}}
      {{- include "tapedeck.assertEqual" (dict "found" $item "op" $op "what" $what) -}}
      {{- $items = append $items $item -}}
    {{- end -}}
  {{- end -}}
  {{- if and $isNew (eq $index $end) -}}{{- $items = append $items $op.value -}}{{- end -}}
  {{- $at = $items -}}
{{- else -}}
  {{- fail (printf "%s: %q is of something that is no map and no list" $what $key) -}}
{{- end -}}
{{- toJson (dict "value" $at) -}}
{{- end -}}

{{- define "tapedeck.assertEqual" -}}
{{- if ne (toJson .found) (toJson .op.value) -}}
{{- fail (printf "%s: found %s" .what (toJson .found)) -}}
{{- end -}}
{{- end -}}
