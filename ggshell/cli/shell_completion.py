"""``ggshell completion bash|zsh``: completion of the command line itself, for the user's shell.

The script is generated from the options and from the first two words of statements in the manual. Group names come from
the checkpoint files in ``dirchk``, so that completing does not start Python.
"""

from __future__ import annotations

from ggshell.check.formats import FORMATS as CHECK_FORMATS
from ggshell.cli.config import FORMATS
from ggshell.cli.options import ENGINES, FLAGS, VALUED
from ggshell.errors import UsageError
from ggshell.language import grammar, pages
from ggshell.language.unsupported import lacks

SUBCOMMANDS = ("check", "completion", "demo", "extract", "logdump", "man", "move", "paramfile", "replicat", "service")
SHELLS = ("bash", "zsh")
_VALUES = {"--format": FORMATS, "--engine": ENGINES}
CHECK_OPTIONS = ("--format", "--kind", "--strict", "--no-color", "--help")
CHECK_KINDS = ("obey", "extract", "replicat", "manager", "globals")
DEMO_OPTIONS = {
    "up": ("--copy", "--mirror", "--kind", "--seed", "--home", "--help"),
    "load": ("--rate", "--seconds", "--seed", "--home", "--help"),
    "status": ("--home", "--help"),
    "down": ("--remove", "--home", "--help"),
}
MOVE_OPTIONS = {
    **dict.fromkeys(
        ("check", "prepare"), ("--from", "--to", "--schemas", "--jobs", "--accept", "--groups", "--home", "--help")
    ),
    **dict.fromkeys(("load", "follow", "verify", "status", "finish"), ("--home", "--help")),
    **dict.fromkeys(("switch", "back"), ("--limit", "--home", "--help")),
}

_SCRIPT = r"""# Completion of ggshell for bash. Load it with:  source <(ggshell completion bash)
_ggshell_home() {
    local file=${XDG_CONFIG_HOME:-$HOME/.config}/ggshell/config.toml home=${GGSHELL_HOME:-} number
    [[ -z $home && -r $file ]] &&
        home=$(sed -n "s/^[[:space:]]*[\"']\{0,1\}home[\"']\{0,1\}[[:space:]]*=[[:space:]]*[\"']\([^\"']*\).*/\1/p" "$file")
    home=${home:-.}
    for ((number = 1; number < ${#COMP_WORDS[@]}; number++)); do
        case ${COMP_WORDS[number]} in
            --home=*) home=${COMP_WORDS[number]#--home=} ;;
            --home)
                [[ ${COMP_WORDS[number + 1]} == "=" ]] && ((number++))
                home=${COMP_WORDS[number + 1]} ;;
        esac
    done
    home=${home//[\"\']/}
    printf '%s' "${home/#\~/$HOME}"
}

_ggshell_lower() { printf '%s' "$1" | tr '[:upper:]' '[:lower:]'; }  # ${1,,} is not known in zsh
_ggshell_upper() { printf '%s' "$1" | tr '[:lower:]' '[:upper:]'; }

_ggshell_groups() {
    local file kind="[edr]" home
    home=$(_ggshell_home)
    case $(_ggshell_lower "$1") in
        extract) kind=e ;;
        replicat) kind=r ;;
        distpath) kind=d ;;
        er|"") ;;
        *) return ;;
    esac
    for file in "$home"/dirchk/*.cp$kind; do
        [[ -e $file ]] && file=${file##*/} && printf '%s\n' "${file%.*}"
    done
}

_ggshell_second_words() {
    case $(_ggshell_upper "$1") in
@SECOND@
    esac
}

_ggshell_statement() {  # fills COMPREPLY with completions of the last statement of a text
    local text=$1 quote=$2 statement partial before words="" known found
    statement=${text##*[;$'\n']}
    partial=${statement##*[$' \t,']}
    before=${statement%"$partial"} known=$partial
    local typed=(${before//,/ })
    case ${#typed[@]} in
        0) words="@VERBS@" ;;
        1) words=$(_ggshell_second_words "${typed[0]}") ;;
        *) words=$(_ggshell_groups "${typed[-1]}") ;;
    esac
    if [[ "${before//[^[:alpha:]]/}$partial" == *[a-z]* ]]; then
        words=$(_ggshell_lower "$words") known=$(_ggshell_lower "$partial")
    fi
    COMPREPLY=()
    for found in $(compgen -W "$words" -- "$known"); do
        COMPREPLY+=("${text%"$partial"}$found")
    done
    # In quotes, the shell closes the quote after a single completion. Offer what follows it instead.
    if [[ -n $quote && ${#COMPREPLY[@]} == 1 && ${#typed[@]} -lt 2 ]]; then
        local only=("${COMPREPLY[@]}")
        _ggshell_statement "${COMPREPLY[0]} " "$quote"
        [[ ${#COMPREPLY[@]} == 0 ]] && COMPREPLY=("${only[@]}")
    fi
}

_ggshell() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words="" files=yes number
    local command="" action=""
    for ((number = 1; number < COMP_CWORD; number++)); do
        case ${COMP_WORDS[number]} in
            @VALUED@) [[ ${COMP_WORDS[number + 1]} == "=" ]] && ((number++)); ((number++)) ;;
            -*) ;;
            *) [[ -n $command ]] && action=${COMP_WORDS[number]} && break; command=${COMP_WORDS[number]} ;;
        esac
    done
    # The shell splits --format=json into three words.
    [[ $word == "=" ]] && word=""
    [[ ${COMP_WORDS[COMP_CWORD]} == "=" || $before != "=" ]] || before=${COMP_WORDS[COMP_CWORD - 2]}
    case $command:$before in
        *:--home) COMPREPLY=($(compgen -d -- "$word")); return ;;
        check:--format) words="@CHECK_FORMATS@" files="" ;;
        check:--kind) words="@CHECK_KINDS@" files="" ;;
@CASES@
        :-c)
            compopt +o filenames 2>/dev/null
            case $word in
                [\"\']*) _ggshell_statement "${word:1}" "${word:0:1}" ;;
                *) _ggshell_statement "$word" "" ;;
            esac
            return ;;
        *)
            case $command:$action in
                :) words="@SUBCOMMANDS@ @OPTIONS@" ;;
                check:*) words="@CHECK@" ;;
                completion:*) words="@SHELLS@" files="" ;;
@ACTIONS@
                extract:*|replicat:*) words="paramfile reportfile" ;;
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
    if len(words) != 1:
        raise UsageError("completion requires the name of a shell", hint=f"ggshell completion {'|'.join(SHELLS)}")
    if words[0] not in SHELLS:
        raise UsageError(f"completion does not support {words[0]}", hint=f"ggshell completion {'|'.join(SHELLS)}")
    found = _SCRIPT
    cases = [f'        :{name}) words="{" ".join(values)}" files="" ;;' for name, values in _VALUES.items()]
    actions = [
        f'                {subcommand}:{action}) words="{" ".join(each)}" files="" ;;'
        for subcommand, options in (("demo", DEMO_OPTIONS), ("move", MOVE_OPTIONS))
        for action, each in (*options.items(), ("*", tuple(options)))
    ]
    parts = {
        "VALUED": "|".join(VALUED),
        "CASES": "\n".join(cases),
        "VERBS": " ".join(grammar.verbs(grammar.COMMANDS)),
        "SECOND": "\n".join(_second_words()),
        "SUBCOMMANDS": " ".join(SUBCOMMANDS),
        "OPTIONS": " ".join((*VALUED, *FLAGS)),
        "CHECK": " ".join(CHECK_OPTIONS),
        "CHECK_FORMATS": " ".join(CHECK_FORMATS),
        "CHECK_KINDS": " ".join(CHECK_KINDS),
        "SHELLS": " ".join(SHELLS),
        "ACTIONS": "\n".join(actions),
    }
    for name, text in parts.items():
        found = found.replace(f"@{name}@", text)
    return found if words[0] == "bash" else _ZSH + found.split("\n", 1)[1]


def _second_words() -> list[str]:
    """A case of the script for each verb, with the supported words and the names that follow it."""
    found: dict[str, dict[str, None]] = {}
    with_groups: set[str] = set()
    for line in pages.all_syntax_lines(grammar.COMMANDS):
        if line.text.startswith(f"{line.leading[0]} group_name"):
            with_groups.add(line.leading[0])
        if len(line.leading) > 1 and not lacks(grammar.COMMANDS, line.page, line.leading[1]):
            found.setdefault(line.leading[0], {})[line.leading[1]] = None
    return [
        f'        {verb}) echo "{" ".join(words)}"{"; _ggshell_groups" if verb in with_groups else ""} ;;'
        for verb, words in found.items()
    ]
