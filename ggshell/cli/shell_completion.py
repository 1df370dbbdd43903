"""``ggshell completion bash|zsh``: completion of the command line itself, for the user's shell.

The script is generated from the options and from the first words of statements in the manual. Group names come from the
checkpoint files in ``dirchk``, so that completing does not start Python.
"""

from __future__ import annotations

from ggshell.cli.config import FORMATS
from ggshell.cli.options import ENGINES, FLAGS, VALUED
from ggshell.errors import UsageError
from ggshell.language import grammar

SUBCOMMANDS = ("check", "completion", "demo", "extract", "logdump", "man", "paramfile", "replicat")
SHELLS = ("bash", "zsh")
_VALUES = {"--format": FORMATS, "--engine": ENGINES}
_DEMO = "up load status down"
_CHECK = "--format --kind --strict --no-color --help"

_SCRIPT = r"""# Completion of ggshell for bash. Load it with:  source <(ggshell completion bash)
_ggshell_groups() {
    local home=${GGSHELL_HOME:-.} number file
    for ((number = 1; number < ${#COMP_WORDS[@]} - 1; number++)); do
        [[ ${COMP_WORDS[number]} == --home ]] && home=${COMP_WORDS[number + 1]}
    done
    for file in "$home"/dirchk/*.cp[edr]; do
        [[ -e $file ]] && file=${file##*/} && printf '%s\n' "${file%.*}"
    done
}

_ggshell() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words="" files=yes number
    local command=""
    for ((number = 1; number < COMP_CWORD; number++)); do
        case ${COMP_WORDS[number]} in
            @VALUED@) ((number++)) ;;
            -*) ;;
            *) command=${COMP_WORDS[number]}; break ;;
        esac
    done
    case $before in
        --home) COMPREPLY=($(compgen -d -- "$word")); return ;;
@CASES@
        -c) words="@VERBS@ $(_ggshell_groups)" files="" ;;
        *)
            case $command in
                "") words="@SUBCOMMANDS@ @OPTIONS@" ;;
                check) words="@CHECK@" ;;
                completion) words="@SHELLS@" files="" ;;
                demo) words="@DEMO@" files="" ;;
                extract|replicat) words="paramfile reportfile" ;;
            esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ -n $files && $word != -* ]] && COMPREPLY+=($(compgen -f -- "$word"))
    return 0
}

complete -o filenames -F _ggshell ggshell
"""
_ZSH = """#compdef ggshell
# Completion of ggshell for zsh. Load it with:  source <(ggshell completion zsh)
autoload -U +X bashcompinit && bashcompinit
"""


def script(words: list[str]) -> str:
    """The completion script for a shell. Raises UsageError for a shell that is not supported."""
    if len(words) != 1 or words[0] not in SHELLS:
        raise UsageError("completion requires the name of a shell", hint=f"ggshell completion {'|'.join(SHELLS)}")
    found = _SCRIPT
    cases = [f'        {name}) words="{" ".join(values)}" files="" ;;' for name, values in _VALUES.items()]
    parts = {
        "VALUED": "|".join(VALUED),
        "CASES": "\n".join(cases),
        "VERBS": " ".join(grammar.verbs(grammar.COMMANDS)),
        "SUBCOMMANDS": " ".join(SUBCOMMANDS),
        "OPTIONS": " ".join((*VALUED, *FLAGS)),
        "CHECK": _CHECK,
        "SHELLS": " ".join(SHELLS),
        "DEMO": _DEMO,
    }
    for name, text in parts.items():
        found = found.replace(f"@{name}@", text)
    return found if words[0] == "bash" else _ZSH + found.split("\n", 1)[1]
